//! The section `tls` of a listener.

use std::path::PathBuf;

use headgate_config::{Print, Printed, Problem, print_sections};
use serde::Deserialize;

/// TLS of a listener. Without certificates, it speaks plain text.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct TlsConfig {
    /// `certificates`: certificates with their keys. Clients that ask for an unknown name get the
    /// first one.
    pub certificates: Vec<CertificateConfig>,
    /// `client_ca_file`: CA certificates that sign client certificates, in PEM.
    pub client_ca_file: Option<PathBuf>,
    /// `client_certificates`: required, optional, or not requested. Required if there is a
    /// `client_ca_file` and this is not set.
    pub client_certificates: Option<ClientCertificates>,
    /// `min_version`: lowest version of TLS that is accepted.
    pub min_version: MinVersion,
}

/// A certificate and its key.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct CertificateConfig {
    /// The certificate, followed by those of intermediate CAs, in PEM.
    pub cert_file: PathBuf,
    /// The private key, in PEM.
    pub key_file: PathBuf,
}

/// Whether clients authenticate with certificates.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    /// They are not requested.
    None,
    /// A client may send one. It has to be valid.
    Optional,
    /// Clients without a valid one are refused.
    Required,
}

/// Lowest version of TLS.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2 and 1.3.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3 only.
    #[serde(rename = "1.3")]
    Tls13,
}

// === impl TlsConfig ===

impl TlsConfig {
    /// Maximum number of certificates: each one is a label in metrics.
    pub const MAX_CERTIFICATES: usize = 64;

    /// Returns `true` if the listener speaks TLS.
    pub const fn is_enabled(&self) -> bool {
        !self.certificates.is_empty()
    }

    /// Returns the scheme of the listener's URLs.
    pub const fn scheme(&self) -> &'static str {
        if self.is_enabled() { "https" } else { "http" }
    }

    /// Returns `true` if clients are authenticated by certificates.
    pub fn authenticates(&self) -> bool {
        self.is_enabled() && self.client_certificates() != ClientCertificates::None
    }

    /// Returns the mode in effect.
    pub(crate) fn client_certificates(&self) -> ClientCertificates {
        let default = match &self.client_ca_file {
            Some(_) => ClientCertificates::Required,
            None => ClientCertificates::None,
        };
        self.client_certificates.unwrap_or(default)
    }

    /// Reports values that are valid by themselves but not in combination. The files are not read.
    pub fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut report = |key, message: &str| problems.push(Problem::new(key, message));
        if self.certificates.len() > Self::MAX_CERTIFICATES {
            report("certificates", "expected at most 64 certificates");
        }
        let requests = self.client_certificates.is_some_and(|it| it != ClientCertificates::None);
        if requests && self.client_ca_file.is_none() {
            report("client_certificates", "requires client_ca_file, which is not set");
        }
        if !self.is_enabled() {
            let message = "requires certificates, which is not set: without it, the listener speaks \
                           plain text";
            if self.client_ca_file.is_some() {
                report("client_ca_file", message);
            }
            if self.min_version != MinVersion::default() {
                report("min_version", message);
            }
        }
        problems
    }
}

// === impl Print ===

print_sections! {
    TlsConfig { certificates, client_ca_file, client_certificates, min_version }
    CertificateConfig { cert_file, key_file }
}

impl Print for ClientCertificates {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::None => "none",
            Self::Optional => "optional",
            Self::Required => "required",
        })
    }
}

impl Print for MinVersion {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        })
    }
}
