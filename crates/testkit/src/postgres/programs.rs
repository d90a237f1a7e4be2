use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{Skip, skip::find_program};

/// Folder of all versions on Debian, which is not on `PATH`.
const PACKAGED: &str = "/usr/lib/postgresql";

/// The programs of one PostgreSQL version.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    pub(super) initdb: PathBuf,
    pub(super) server: PathBuf,
    pub(super) psql: PathBuf,
}

// === impl Programs ===

impl Programs {
    pub(super) fn find() -> Result<Self, Skip> {
        Ok(Self { initdb: find("initdb")?, server: find("postgres")?, psql: find("psql")? })
    }
}

/// Finds a program beside `initdb`, so that all have the same version, or else on `PATH`: a client
/// may be installed without a server.
pub(super) fn find(name: &str) -> Result<PathBuf, Skip> {
    server_folder()
        .map(|folder| folder.join(name))
        .filter(|program| program.is_file())
        .or_else(|| find_program(name).ok())
        .ok_or_else(|| skip(format!("{name} is neither on PATH nor under {PACKAGED}")))
}

pub(super) fn skip(reason: String) -> Skip {
    Skip::new("postgresql", reason)
}

/// The folder of the `initdb` on `PATH`, or else of the newest packaged one.
fn server_folder() -> Option<PathBuf> {
    let on_path = find_program("initdb").ok();
    // On `PATH` it may be a link into the folder of the others.
    let initdb = on_path.or_else(|| newest_initdb(Path::new(PACKAGED)))?.canonicalize().ok()?;
    initdb.parent().map(Path::to_owned)
}

fn newest_initdb(packaged: &Path) -> Option<PathBuf> {
    fs::read_dir(packaged)
        .ok()?
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let version = folder.file_name()?.to_str()?.parse::<f32>().ok()?;
            let initdb = folder.join("bin/initdb");
            initdb.is_file().then_some((version, initdb))
        })
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, initdb)| initdb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_newest_version_that_has_a_server() {
        let packaged = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "18"] {
            fs::create_dir_all(packaged.path().join(version).join("bin")).unwrap();
        }
        assert_eq!(newest_initdb(packaged.path()), None);
        for version in ["9.6", "15"] {
            fs::write(packaged.path().join(version).join("bin/initdb"), "").unwrap();
        }
        assert_eq!(newest_initdb(packaged.path()), Some(packaged.path().join("15/bin/initdb")));
    }
}
