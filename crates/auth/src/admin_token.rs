//! The token that a server creates on its first start, for users who can read its files.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use ring::rand::{SecureRandom, SystemRandom};

const PREFIX: &str = "hg_";
const SECRET_BYTES: usize = 32;

/// Maximum number of bytes read from the file; a token is shorter.
const MAX_FILE_BYTES: u64 = 1024;

/// A token with the role `sys_admin`, in a file that only its owner can read.
pub struct AdminToken {
    text: String,
    path: PathBuf,
    created: bool,
}

// === impl AdminToken ===

impl AdminToken {
    /// Name of its file in the data folder.
    pub const FILE_NAME: &'static str = "admin-token";

    /// Reads the token in `data_dir`, if there is one.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is readable by other users, or holds no token.
    pub fn open(data_dir: &Path) -> io::Result<Option<Self>> {
        let path = data_dir.join(Self::FILE_NAME);
        match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(with_path(&path, "cannot open", &error)),
            Ok(file) => Ok(Some(Self { text: read(&file, &path)?, path, created: false })),
        }
    }

    /// Reads the token in `data_dir`, or creates it.
    ///
    /// # Errors
    ///
    /// When the file can be neither read nor created, is readable by other users, or holds no
    /// token.
    pub fn open_or_create(data_dir: &Path) -> io::Result<Self> {
        if let Some(existing) = Self::open(data_dir)? {
            return Ok(existing);
        }
        let path = data_dir.join(Self::FILE_NAME);
        let created = create(data_dir, &path);
        let created = created.map_err(|error| with_path(&path, "cannot create", &error))?;
        let (text, created) = match created {
            OpenedToken::Created(text) => (text, true),
            OpenedToken::Existing(file) => (read(&file, &path)?, false),
        };
        Ok(Self { text, path, created })
    }

    /// Returns the token in clear text.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Returns the path of its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if it was just created and must be shown once.
    pub const fn created(&self) -> bool {
        self.created
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminToken").field("path", &self.path).finish_non_exhaustive()
    }
}

enum OpenedToken {
    Created(String),
    Existing(File),
}

/// Writes the whole file under another name first: no reader sees half a token, and of two servers
/// that start at once both use the token of the first.
fn create(data_dir: &Path, path: &Path) -> io::Result<OpenedToken> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    let text = format!("{PREFIX}{}", URL_SAFE.encode(random::<SECRET_BYTES>()?));
    let draft =
        data_dir.join(format!(".{}.{}", AdminToken::FILE_NAME, URL_SAFE.encode(random::<9>()?)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let linked = file
        .write_all(format!("{text}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(OpenedToken::Created(text)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            File::open(path).map(OpenedToken::Existing)
        }
        Err(error) => Err(error),
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let no_random = |_| io::Error::other("the operating system has no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(no_random)?;
    Ok(bytes)
}

fn read(file: &File, path: &Path) -> io::Result<String> {
    let shown = path.display();
    let mode = file.metadata()?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!(
            "{shown} is readable by other users (mode {mode:03o}): run chmod 600 on it or, if it may \
             have been read, delete it; the next start creates a new token"
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, message));
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES).read_to_string(&mut text);
    let text = text.trim();
    if read.is_err() || !is_token(text) {
        let message =
            format!("{shown} holds no admin token: delete it; the next start creates a new one");
        return Err(io::Error::new(ErrorKind::InvalidData, message));
    }
    Ok(text.to_owned())
}

fn is_token(text: &str) -> bool {
    let secret = text.strip_prefix(PREFIX).and_then(|text| URL_SAFE.decode(text).ok());
    secret.is_some_and(|secret| secret.len() == SECRET_BYTES)
}

fn with_path(path: &Path, what: &str, error: &io::Error) -> io::Error {
    let message = format!(
        "{what} the admin token {}: {error}: let the server own it, or set another server.data_dir",
        path.display()
    );
    io::Error::new(error.kind(), message)
}

#[cfg(test)]
mod tests;
