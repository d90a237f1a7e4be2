use std::{
    fs,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::certificates::{CertificateError, Certificates, client_chain, private_key, roots};

/// The certificate files of one backend, in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Authorities to trust. Default: those of the system.
    pub ca_file: Option<PathBuf>,
    /// Client certificate, followed by its issuers.
    pub cert_file: Option<PathBuf>,
    /// Private key of the client certificate.
    pub key_file: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}: {cause}", path.display())]
pub struct TlsFileError {
    /// Last part of the key that names the file: `ca_file`, `cert_file` or `key_file`.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The error of the system, or of the contents.
    #[source]
    pub cause: FileErrorCause,
}

/// Cause of a [`TlsFileError`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileErrorCause {
    /// The file cannot be read.
    #[error("cannot read the file: {0}")]
    Read(String),
    /// Its contents are invalid.
    #[error(transparent)]
    Contents(#[from] CertificateError),
}

const CA: &str = "ca_file";
const CERT: &str = "cert_file";
const KEY: &str = "key_file";

// === impl TlsFiles ===

impl TlsFiles {
    /// Returns the invalid combinations, each as the last part of a key and a message.
    ///
    /// `section` is the section of the configuration; `without_tls` says how to turn TLS on if the
    /// backend is reached without it, in which case none of the files would be used.
    pub fn contradictions(
        &self,
        section: &str,
        without_tls: Option<&str>,
    ) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        if let Some(remedy) = without_tls {
            let unused = self.each().map(|(key, _)| (key, format!("only used with TLS: {remedy}")));
            problems.extend(unused);
        }
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => {
                problems.push((KEY, format!("{section}.{CERT} needs its private key")));
            }
            (None, Some(_)) => {
                problems.push((CERT, format!("{section}.{KEY} needs its certificate")));
            }
            _ => {}
        }
        problems
    }

    /// Reads and validates the files, for use with rustls.
    pub fn load(&self) -> Result<Certificates, TlsFileError> {
        let mut certificates = Certificates::default();
        if let Some(path) = &self.ca_file {
            let pem = read(CA, path)?;
            certificates = certificates.trusting(pem).map_err(|error| invalid(CA, path, error))?;
        }
        if let (Some(cert), Some(key)) = (&self.cert_file, &self.key_file) {
            let (chain, private) = (read(CERT, cert)?, read(KEY, key)?);
            certificates = certificates.presenting(chain, private).map_err(|error| {
                let is_chain = error == CertificateError::Certificate;
                if is_chain { invalid(CERT, cert, error) } else { invalid(KEY, key, error) }
            })?;
        }
        Ok(certificates)
    }

    /// Validates that the files can be read and contain PEM, for clients that use another TLS than
    /// rustls and may accept more kinds of keys.
    pub fn check(&self) -> Result<(), TlsFileError> {
        for (key, path) in self.each() {
            let pem = read(key, path)?;
            let checked = match key {
                CA => roots(&pem).map(drop),
                CERT => client_chain(&pem).map(drop),
                _ => private_key(&pem).map(drop),
            };
            checked.map_err(|error| invalid(key, path, error))?;
        }
        Ok(())
    }

    /// Returns the paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.each().map(|(_, path)| path.as_path())
    }

    fn each(&self) -> impl Iterator<Item = (&'static str, &PathBuf)> {
        let files = [(CA, &self.ca_file), (CERT, &self.cert_file), (KEY, &self.key_file)];
        files.into_iter().filter_map(|(key, file)| file.as_ref().map(|path| (key, path)))
    }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsFileError> {
    fs::read(path).map_err(|error| {
        let cause = FileErrorCause::Read(error.to_string());
        TlsFileError { key, path: path.to_owned(), cause }
    })
}

fn invalid(key: &'static str, path: &Path, error: CertificateError) -> TlsFileError {
    TlsFileError { key, path: path.to_owned(), cause: error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn an_error_names_the_key_the_file_and_the_expected_contents() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.pem");
        let files = TlsFiles { ca_file: Some(missing.clone()), ..TlsFiles::default() };
        for error in [files.load().unwrap_err(), files.check().unwrap_err()] {
            assert_eq!((error.key, &error.path), ("ca_file", &missing));
            assert!(error.to_string().contains("missing.pem: cannot read the file"), "{error}");
        }
        let ca_file = Some(file(&folder, "ca.pem", "nonsense"));
        let files = TlsFiles { ca_file, ..TlsFiles::default() };
        for error in [files.load().unwrap_err(), files.check().unwrap_err()] {
            assert!(error.to_string().contains("-----BEGIN CERTIFICATE-----"), "{error}");
        }
    }

    #[test]
    fn an_encrypted_key_is_reported_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let key =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";
        let key_file = Some(file(&folder, "key.pem", key));
        let error = TlsFiles { key_file, ..TlsFiles::default() }.check().unwrap_err();
        assert_eq!(error.key, "key_file");
        assert!(error.to_string().contains("openssl pkey"), "{error}");
    }

    #[test]
    fn a_certificate_needs_its_key_and_tls() {
        let files = TlsFiles { cert_file: Some("c.pem".into()), ..TlsFiles::default() };
        let problems = files.contradictions("kafka", None);
        assert_eq!(problems, [("key_file", "kafka.cert_file needs its private key".to_owned())]);
        let both = TlsFiles { key_file: Some("k.pem".into()), ..files };
        assert_eq!(both.contradictions("kafka", None), []);
        let unused = both.contradictions("kafka", Some("set SSL"));
        assert_eq!(unused.len(), 2);
        assert_eq!(unused[0], ("cert_file", "only used with TLS: set SSL".to_owned()));
    }
}
