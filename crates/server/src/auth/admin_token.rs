//! The token that a server makes for whoever can read its files.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use ring::rand::{SecureRandom, SystemRandom};

const FILE_NAME: &str = "admin-token";
const PREFIX: &str = "hg_";
const SECRET_BYTES: usize = 32;

/// More than a token has, so that a file of any size is read safely.
const MAX_FILE_BYTES: u64 = 1024;

/// A secret that grants everything, in a file that only its owner can read.
pub struct AdminToken {
    text: String,
    path: PathBuf,
    created: bool,
}

// === impl AdminToken ===

impl AdminToken {
    /// Reads the token in `data_dir`, or makes one if there is none.
    pub(crate) fn open_or_create(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(FILE_NAME);
        let opened = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                create(data_dir, &path).map_err(|error| told(&path, "cannot create", &error))?
            }
            Err(error) => return Err(told(&path, "cannot open", &error)),
            Ok(file) => Opened::There(file),
        };
        let (text, created) = match opened {
            Opened::Made(text) => (text, true),
            Opened::There(file) => (read(&file, &path)?, false),
        };
        Ok(Self { text, path, created })
    }

    /// The token itself.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The file that it is kept in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this start made it, so that it has to be shown once.
    pub const fn created(&self) -> bool {
        self.created
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminToken").field("path", &self.path).finish_non_exhaustive()
    }
}

enum Opened {
    Made(String),
    There(File),
}

/// Makes the file complete under another name first: nobody ever sees half a token, and of two
/// servers that start at once both use the token of the first.
fn create(data_dir: &Path, path: &Path) -> io::Result<Opened> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    let text = format!("{PREFIX}{}", URL_SAFE.encode(random::<SECRET_BYTES>()?));
    let draft = data_dir.join(format!(".{FILE_NAME}.{}", URL_SAFE.encode(random::<9>()?)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let linked = file
        .write_all(format!("{text}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(Opened::Made(text)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            File::open(path).map(Opened::There)
        }
        Err(error) => Err(error),
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let no_random = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(no_random)?;
    Ok(bytes)
}

fn read(file: &File, path: &Path) -> io::Result<String> {
    let shown = path.display();
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!(
            "{shown} is open to other users (mode {mode:03o}): run chmod 600 on it or, if somebody \
             may have read it, delete it, and the next start makes a new token"
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, message));
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
    let text = text.trim();
    if read.is_err() || !is_token(text) {
        let message = format!(
            "{shown} does not hold an admin token: delete it, and the next start makes a new one"
        );
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    Ok(text.to_owned())
}

fn is_token(text: &str) -> bool {
    let secret = text.strip_prefix(PREFIX).and_then(|text| URL_SAFE.decode(text).ok());
    secret.is_some_and(|secret| secret.len() == SECRET_BYTES)
}

fn told(path: &Path, what: &str, error: &io::Error) -> io::Error {
    let message = format!(
        "{what} the admin token {}: {error}: make it the server's own, or choose another data folder",
        path.display()
    );
    io::Error::new(error.kind(), message)
}

#[cfg(test)]
mod tests;
