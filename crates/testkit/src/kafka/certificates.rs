use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::CertificateAuthority;

/// Creates an authority, and certificates signed by it: for 127.0.0.1, and for a client.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    let authority = CertificateAuthority::new("authority");
    authority.write(folder);
    authority.issue(&["client.test"]).write(folder, CLIENT);
    let broker = authority.issue(&["127.0.0.1"]);
    fs::write(key_store(folder), [broker.key, broker.certificate].concat())
}

const CLIENT: &str = "client";

/// Key and certificate of the broker, in one file.
pub(super) fn key_store(folder: &Path) -> PathBuf {
    folder.join("kafka.pem")
}

/// Certificate of the authority.
pub(super) fn authority(folder: &Path) -> PathBuf {
    folder.join("ca.crt")
}

/// Certificate and key of the client.
pub(super) fn client(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join(format!("{CLIENT}.crt")), folder.join(format!("{CLIENT}.key")))
}
