use std::{error::Error, io};

use rustls::{AlertDescription, CertificateError, Error as TlsError};

/// Explains an error of TLS in the causes of `error`; `None` if there is none.
///
/// `server` is the name of the backend, `section` the section of the configuration that has its
/// `ca_file`. The result contains names and dates of certificates, and nothing of a URL.
///
/// ```
/// use std::io;
///
/// let error = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
/// let error = io::Error::other(error);
/// let text = headgate_tls_client::explain(&error, "Redis", "redis").unwrap();
/// assert!(text.contains("not trusted: set redis.ca_file"));
/// ```
pub fn explain(error: &(dyn Error + 'static), server: &str, section: &str) -> Option<String> {
    let error = find(error)?;
    let hint = match error {
        TlsError::InvalidCertificate(invalid) => certificate(invalid, server, section),
        TlsError::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => format!(
            "{server} demands a client certificate: set {section}.cert_file and \
             {section}.key_file"
        ),
        TlsError::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnsupportedCertificate,
        ) => format!("{server} does not accept the client certificate of {section}.cert_file"),
        TlsError::AlertReceived(AlertDescription::ProtocolVersion)
        | TlsError::PeerIncompatible(_) => {
            format!("{server} supports neither TLS 1.3 nor TLS 1.2 with modern ciphers")
        }
        TlsError::InvalidMessage(_) => "the server does not speak TLS on this port".to_owned(),
        _ => "handshake failed".to_owned(),
    };
    Some(format!("{hint} ({error})"))
}

fn certificate(error: &CertificateError, server: &str, section: &str) -> String {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "{server}'s certificate is signed by an authority that is not trusted: set \
             {section}.ca_file"
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("{server}'s certificate is for another host name")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("{server}'s certificate has expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("{server}'s certificate is not valid yet: check the clocks")
        }
        CertificateError::Revoked => format!("{server}'s certificate is revoked"),
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => format!(
            "{server} presents the certificate of an authority (CA:TRUE) as its own: issue one \
             for the server"
        ),
        _ => format!("{server}'s certificate is invalid"),
    }
}

/// The error of rustls among the causes. `source` of an `io::Error` skips the error inside.
fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e TlsError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = inside.and_then(|inside| find(inside)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}
