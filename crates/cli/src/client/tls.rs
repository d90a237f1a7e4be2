//! TLS of the client: trusted CAs, and a client certificate.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use reqwest::{Certificate, ClientBuilder, Identity};
use thiserror::Error;

use super::HEADING;

/// Options of TLS.
#[derive(Debug, Args)]
pub(super) struct TlsOptions {
    /// PEM file of the CAs that are trusted instead of the system's.
    #[arg(long, global = true, help_heading = HEADING, env = "HEADGATE_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// PEM file of the client certificate.
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        env = "HEADGATE_CLIENT_CERT",
        value_name = "FILE",
    )]
    client_cert: Option<PathBuf>,
    /// PEM file of the client certificate's key.
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        env = "HEADGATE_CLIENT_KEY",
        value_name = "FILE",
    )]
    client_key: Option<PathBuf>,
}

/// A file that cannot be used.
#[derive(Debug, Error)]
pub(crate) enum TlsError {
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{} has no CA certificate in PEM: expected at least one block BEGIN CERTIFICATE", .0.display())]
    NoCertificate(PathBuf),
    #[error("{} and {} are not a client certificate and its key in PEM", cert.display(), key.display())]
    NoIdentity { cert: PathBuf, key: PathBuf },
    #[error("set both --client-cert and --client-key, or neither")]
    Incomplete,
}

impl TlsOptions {
    /// Applies the options to a client of a server with TLS.
    pub(super) fn apply(&self, builder: ClientBuilder) -> Result<ClientBuilder, TlsError> {
        let builder = match &self.ca_file {
            Some(path) => builder.tls_certs_only(authorities(path)?),
            None => builder,
        };
        let (cert, key) = match (&self.client_cert, &self.client_key) {
            (Some(cert), Some(key)) => (cert, key),
            (None, None) => return Ok(builder),
            _ => return Err(TlsError::Incomplete),
        };
        let pem = [read(cert)?, b"\n".to_vec(), read(key)?].concat();
        let invalid = |_| TlsError::NoIdentity { cert: cert.clone(), key: key.clone() };
        Ok(builder.identity(Identity::from_pem(&pem).map_err(invalid)?))
    }
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, TlsError> {
    let found = Certificate::from_pem_bundle(&read(path)?).unwrap_or_default();
    if found.is_empty() { Err(TlsError::NoCertificate(path.to_owned())) } else { Ok(found) }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|cause| TlsError::Unreadable { path: path.to_owned(), cause })
}
