use std::{fmt, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use thiserror::Error;

/// Trusted authorities and a client certificate, in PEM.
///
/// The default trusts the authorities of the system and has no client certificate.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Certificates {
    authorities: Option<Vec<u8>>,
    client: Option<ClientCertificate>,
}

#[derive(Clone, PartialEq, Eq)]
struct ClientCertificate {
    chain: Vec<u8>,
    key: Vec<u8>,
}

/// Invalid certificates.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateError {
    /// The authorities are not certificates in PEM.
    #[error("invalid certificates of authorities: expected PEM (-----BEGIN CERTIFICATE-----)")]
    Authorities,
    /// The client certificate is not PEM.
    #[error(
        "invalid client certificate: expected PEM (-----BEGIN CERTIFICATE-----), followed by the \
         certificates of its issuers"
    )]
    Certificate,
    /// The private key is not PEM.
    #[error("invalid private key: expected PEM (-----BEGIN PRIVATE KEY-----)")]
    Key,
    /// The private key has a passphrase.
    #[error("the private key is encrypted: decrypt it with `openssl pkey -in FILE -out NEW_FILE`")]
    EncryptedKey,
    /// The private key belongs to another certificate, or its kind is not supported.
    #[error(
        "the private key is not that of the client certificate, or neither RSA, ECDSA (P-256, \
         P-384) nor Ed25519"
    )]
    Mismatch,
    /// The system has no trusted authorities.
    #[error("the system has no trusted authorities: install ca-certificates, or set a ca_file")]
    NoAuthorities,
}

// === impl Certificates ===

impl Certificates {
    /// Trusts these authorities, in PEM, instead of those of the system.
    pub fn trusting(self, authorities: impl Into<Vec<u8>>) -> Result<Self, CertificateError> {
        let authorities = authorities.into();
        roots(&authorities)?;
        Ok(Self { authorities: Some(authorities), ..self })
    }

    /// Presents this certificate to servers that ask for one; `key` is its private key, in PEM.
    pub fn presenting(
        self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Result<Self, CertificateError> {
        let client = ClientCertificate { chain: certificate.into(), key: key.into() };
        let certificates = Self { client: Some(client), ..self };
        certificates.with_roots(RootCertStore::empty())?;
        Ok(certificates)
    }

    /// Returns the trusted authorities in PEM; `None` means those of the system.
    pub fn authorities(&self) -> Option<&[u8]> {
        self.authorities.as_deref()
    }

    /// Returns the client certificate and its private key, in PEM.
    pub fn client(&self) -> Option<(&[u8], &[u8])> {
        self.client.as_ref().map(|client| (&*client.chain, &*client.key))
    }

    /// Returns the configuration of rustls. It has a crypto provider of its own, so that the
    /// process's default is left to the program.
    pub fn client_config(&self) -> Result<ClientConfig, CertificateError> {
        let roots = match &self.authorities {
            Some(authorities) => roots(authorities)?,
            None => system_roots()?,
        };
        self.with_roots(roots)
    }

    /// Returns the configuration of a channel of tonic.
    #[cfg(feature = "tonic")]
    pub fn tonic_config(&self) -> tonic::transport::ClientTlsConfig {
        use tonic::transport::{Certificate, ClientTlsConfig, Identity};
        let config = match &self.authorities {
            Some(authorities) => {
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities))
            }
            None => ClientTlsConfig::new().with_native_roots(),
        };
        match &self.client {
            Some(client) => config.identity(Identity::from_pem(&client.chain, &client.key)),
            None => config,
        }
    }

    fn with_roots(&self, roots: RootCertStore) -> Result<ClientConfig, CertificateError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|_| CertificateError::Authorities)?
            .with_root_certificates(roots);
        let Some(ClientCertificate { chain, key }) = &self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let (chain, key) = (client_chain(chain)?, private_key(key)?);
        builder.with_client_auth_cert(chain, key).map_err(|_| CertificateError::Mismatch)
    }
}

/// Authorities in PEM, at least one.
pub(crate) fn roots(pem: &[u8]) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for authority in parse(pem).ok_or(CertificateError::Authorities)? {
        roots.add(authority).map_err(|_| CertificateError::Authorities)?;
    }
    Ok(roots)
}

/// A certificate in PEM, followed by its issuers.
pub(crate) fn client_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    parse(pem).ok_or(CertificateError::Certificate)
}

pub(crate) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        let is_encrypted = pem.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED);
        if is_encrypted { CertificateError::EncryptedKey } else { CertificateError::Key }
    })
}

/// Both `-----BEGIN ENCRYPTED PRIVATE KEY-----` and `Proc-Type: 4,ENCRYPTED` contain it.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn system_roots() -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(CertificateError::NoAuthorities) } else { Ok(roots) }
}

/// All certificates in `pem`, at least one.
fn parse(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok().filter(|certificates| !certificates.is_empty())
}

impl fmt::Debug for Certificates {
    /// Leaves out the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("authorities", &self.authorities.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}
