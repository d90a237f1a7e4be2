//! The data folder and the limits of the process.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use headgate_auth::{AdminToken, AuthMode};
use headgate_server::Config;
use rustix::{fs::statvfs, process::Resource};

use super::report::Finding;

const AREA: &str = "machine";

/// Files beside client connections: the database, Redis, the standard streams, listeners.
const OTHER_FILES: u64 = 256;

const MIB: u64 = 1024 * 1024;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let data_dir = &config.server.data_dir;
    let mut findings = Vec::new();
    let has_token = config.auth.mode != Some(AuthMode::Off) && !config.auth.authenticates();
    let has_file = config.database.target(data_dir).is_ok_and(|target| target.file_path().is_ok());
    if has_token || has_file {
        findings.extend(folder(data_dir));
    }
    if has_token {
        findings.extend(admin_token(data_dir));
    }
    findings.extend(open_files(config));
    findings
}

/// Checks that files can be created, who may read them, and the space.
fn folder(path: &Path) -> Vec<Finding> {
    let shown = path.display();
    // The server creates missing folders.
    let Some(existing) = path.ancestors().find(|folder| folder.exists()) else {
        return Vec::new();
    };
    let existing = if existing.as_os_str().is_empty() { Path::new(".") } else { existing };
    let mut findings = Vec::new();
    let advice = "let the user that serves own it, mount it writable, or set another \
                  server.data_dir";
    match tempfile::tempfile_in(existing) {
        Ok(_) => findings.push(Finding::ok(AREA, format!("the data folder {shown} is writable"))),
        Err(error) => {
            let message = format!("cannot write to the data folder {shown}: {error}");
            findings.push(Finding::error(AREA, message, advice));
        }
    }
    if let (true, Ok(metadata)) = (path.is_dir(), fs::metadata(path)) {
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o022 != 0 {
            findings.push(Finding::warning(
                AREA,
                format!("other users may write to the data folder {shown} (mode {mode:03o})"),
                format!("run chmod 700 {shown}"),
            ));
        }
    }
    findings.extend(readable_database(path));
    findings.extend(space(existing));
    findings
}

fn readable_database(folder: &Path) -> Option<Finding> {
    let file = folder.join("headgate.db");
    let mode = fs::metadata(&file).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        let shown = file.display();
        let message = format!("other users may read the database {shown} (mode {mode:03o})");
        Finding::warning(AREA, message, format!("run chmod 600 {shown}"))
    })
}

fn space(folder: &Path) -> Option<Finding> {
    let disk = statvfs(folder).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize) / MIB;
    let message = format!("{free} MiB are free on the disk of the data folder");
    let advice = "free or add disk space; a full disk refuses changes and increments";
    Some(match free {
        0..100 => Finding::error(AREA, message, advice),
        100..1024 => Finding::warning(AREA, message, advice),
        _ => Finding::ok(AREA, message),
    })
}

/// Checks the admin token, without creating one.
fn admin_token(data_dir: &Path) -> Option<Finding> {
    if !data_dir.join(AdminToken::FILE_NAME).exists() {
        return None;
    }
    Some(match AdminToken::open_or_create(data_dir) {
        Ok(token) => Finding::ok(AREA, format!("{} is private", token.path().display())),
        Err(error) => {
            Finding::error(AREA, error.to_string(), "the server does not start otherwise")
        }
    })
}

fn open_files(config: &Config) -> Option<Finding> {
    // The server raises the limit in force.
    let limit = rustix::process::getrlimit(Resource::Nofile).maximum?;
    let needed = config.server.max_connections.get() + OTHER_FILES;
    Some(if limit < needed {
        Finding::warning(
            AREA,
            format!(
                "the server may open {limit} files; server.max_connections needs up to {needed}"
            ),
            "raise it (ulimit -n, LimitNOFILE= of systemd), or lower server.max_connections",
        )
    } else {
        Finding::ok(AREA, format!("the server may open {limit} files"))
    })
}
