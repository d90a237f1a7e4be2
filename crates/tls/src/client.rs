//! The names of an authenticated client.

use std::{fmt, sync::Arc};

use rustls::pki_types::CertificateDer;

use crate::certificate::Certificate;

/// Names of a client certificate that a CA of the listener has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate(Arc<[SubjectName]>);

/// A subject alternative name. The common name of a certificate is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubjectName {
    /// A DNS name, in lower case.
    Dns(String),
    /// A URI, such as `spiffe://cluster.local/ns/default/sa/api`.
    Uri(String),
    /// An e-mail address.
    Email(String),
}

// === impl ClientCertificate ===

impl ClientCertificate {
    /// Reads the names of a certificate that was verified.
    pub fn new(certificate: &CertificateDer<'_>) -> Self {
        let names = Certificate::parse(certificate).map(|it| it.names);
        Self(names.unwrap_or_default().into())
    }

    /// Returns the subject alternative names.
    pub fn names(&self) -> &[SubjectName] {
        &self.0
    }
}

impl From<Vec<SubjectName>> for ClientCertificate {
    fn from(names: Vec<SubjectName>) -> Self {
        Self(names.into())
    }
}

// === impl SubjectName ===

impl SubjectName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Dns(name) | Self::Uri(name) | Self::Email(name) => name,
        }
    }
}

impl fmt::Display for SubjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
