//! TLS: trusted authorities and the client certificate.

use std::{fmt, io, sync::Arc};

use rustls::{
    AlertDescription, CertificateError, ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use thiserror::Error;

/// Certificates, in PEM.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    /// Authorities to trust instead of those of the system.
    pub(crate) authorities: Option<Vec<u8>>,
    /// Client certificate and its key.
    pub(crate) client: Option<(Vec<u8>, Vec<u8>)>,
}

/// Invalid certificates.
#[derive(Clone, Copy, Debug, Error)]
#[non_exhaustive]
pub enum RedisCertificateError {
    /// The authorities are not certificates in PEM.
    #[error("invalid certificates of authorities: expected PEM")]
    Authorities,
    /// The client certificate is not PEM.
    #[error(
        "invalid client certificate: expected PEM, followed by the certificates of its issuers"
    )]
    Certificate,
    /// The private key is not PEM, or not that of the certificate.
    #[error("invalid private key: expected that of the client certificate, in PEM")]
    Key,
    /// The system has no trusted authorities.
    #[error("the system has no trusted authorities: set redis.ca_file")]
    NoAuthorities,
}

impl Certificates {
    /// Validates the certificates before they are used.
    pub(crate) fn check(&self) -> Result<(), RedisCertificateError> {
        if self.authorities.is_some() {
            self.roots()?;
        }
        self.with_roots(RootCertStore::empty()).map(|_| ())
    }

    /// The configuration of TLS, with a crypto provider of its own instead of the process default.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, RedisCertificateError> {
        self.with_roots(self.roots()?)
    }

    fn with_roots(&self, roots: RootCertStore) -> Result<ClientConfig, RedisCertificateError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| RedisCertificateError::Authorities)?
            .with_root_certificates(roots);
        let Some((certificate, key)) = &self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates(certificate).ok_or(RedisCertificateError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| RedisCertificateError::Key)?;
        builder.with_client_auth_cert(chain, key).map_err(|_| RedisCertificateError::Key)
    }

    fn roots(&self) -> Result<RootCertStore, RedisCertificateError> {
        let mut roots = RootCertStore::empty();
        if let Some(pem) = &self.authorities {
            for authority in certificates(pem).ok_or(RedisCertificateError::Authorities)? {
                roots.add(authority).map_err(|_| RedisCertificateError::Authorities)?;
            }
            return Ok(roots);
        }
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() { Err(RedisCertificateError::NoAuthorities) } else { Ok(roots) }
    }
}

/// All certificates in `pem`, at least one.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok().filter(|certificates| !certificates.is_empty())
}

/// Explains an error of TLS; `None` if it is another error.
pub(crate) fn explain(error: &io::Error) -> Option<String> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let hint = match error {
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => {
            "Redis's certificate is signed by an authority that is not trusted: set \
             redis.ca_file"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "Redis's certificate is for another host name",
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "Redis's certificate has expired",
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => "Redis demands a client certificate: set redis.cert_file and redis.key_file",
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired,
        ) => "Redis does not accept the client certificate",
        rustls::Error::InvalidMessage(_) => "the server does not speak TLS on this port",
        _ => "handshake failed",
    };
    Some(format!("{hint} ({error})"))
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("authorities", &self.authorities.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}
