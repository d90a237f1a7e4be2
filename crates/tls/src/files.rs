//! Reading the configured files.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use headgate_config::{Problem, open_regular_file};
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

use crate::TlsConfig;

/// Larger files are not certificates.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Identifies the content of all files.
pub(crate) type Fingerprint = [u8; SHA256_OUTPUT_LEN];

/// Content of the files of a listener.
pub(crate) struct TlsFiles {
    /// Certificates with their keys, in the order of the configuration.
    pub(crate) certificates: Vec<(FileContent, FileContent)>,
    pub(crate) client_ca: Option<FileContent>,
}

/// A file, and the key that configures it.
pub(crate) struct FileContent {
    key: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

// === impl TlsFiles ===

impl TlsFiles {
    pub(crate) fn read(config: &TlsConfig) -> Result<Self, Problem> {
        let certificates = config.certificates.iter().enumerate().map(|(place, pair)| {
            let key = |name| format!("certificates[{place}].{name}");
            Ok((
                FileContent::read(key("cert_file"), &pair.cert_file)?,
                FileContent::read(key("key_file"), &pair.key_file)?,
            ))
        });
        let client_ca = config.client_ca_file.as_deref().filter(|_| config.authenticates());
        Ok(Self {
            certificates: certificates.collect::<Result<_, Problem>>()?,
            client_ca: client_ca
                .map(|path| FileContent::read("client_ca_file".to_owned(), path))
                .transpose()?,
        })
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut context = Context::new(&SHA256);
        let pairs = self.certificates.iter().flat_map(|(certificate, key)| [certificate, key]);
        for file in pairs.chain(&self.client_ca) {
            context.update(&file.bytes.len().to_le_bytes());
            context.update(&file.bytes);
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(context.finish().as_ref());
        fingerprint
    }
}

// === impl FileContent ===

impl FileContent {
    fn read(key: String, path: &Path) -> Result<Self, Problem> {
        let mut file = Self { key, path: path.to_owned(), bytes: Vec::new() };
        match read(path, &mut file.bytes) {
            Ok(()) if file.bytes.len() as u64 > MAX_FILE_BYTES => {
                Err(file.problem("is larger than 1 MiB: expected a file in PEM"))
            }
            Ok(()) => Ok(file),
            Err(error) => Err(file.problem(&format!("cannot be read: {error}"))),
        }
    }

    /// A problem of this file.
    pub(crate) fn problem(&self, message: &str) -> Problem {
        Problem::new(self.key.as_str(), format!("{} {message}", self.path.display()))
    }
}

fn read(path: &Path, into: &mut Vec<u8>) -> io::Result<()> {
    open_regular_file(path)?.take(MAX_FILE_BYTES + 1).read_to_end(into).map(drop)
}
