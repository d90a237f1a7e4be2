//! The files of a listener, checked and ready to use.

use std::{ops::RangeInclusive, path::PathBuf, sync::Arc};

use headgate::Clock;
use headgate_config::Problem;
use rustls::{
    Error, InconsistentKeys, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

use crate::{
    ClientCertificates, MinVersion, TlsConfig,
    certificate::Certificate,
    files::{FileContent, Fingerprint, TlsFiles},
    resolver::CertificateResolver,
};

/// Application protocols of an HTTP listener, in order of preference.
const HTTP: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Tolerated skew of the clocks of this machine and of the CA that has just signed a certificate.
const SKEW_SECONDS: i64 = 300;

/// Certificates and keys that were read and checked.
pub struct LoadedTls {
    pub(crate) config: TlsConfig,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) certificates: Vec<LoadedCertificate>,
}

/// A certificate in use.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCertificate {
    pub(crate) path: PathBuf,
    /// First and last second at which it is valid, since 1970.
    pub(crate) validity: RangeInclusive<i64>,
}

impl LoadedTls {
    /// Reads the files that `config` names, and checks them.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or used. The key is relative to the section.
    pub fn read(config: &TlsConfig, clock: &dyn Clock) -> Result<Self, Problem> {
        Self::new(config, &TlsFiles::read(config)?, clock)
    }

    pub(crate) fn new(
        config: &TlsConfig,
        files: &TlsFiles,
        clock: &dyn Clock,
    ) -> Result<Self, Problem> {
        let provider = Arc::new(ring::default_provider());
        let now = seconds(clock);
        let mut parsed = Vec::new();
        for (certificate, key) in &files.certificates {
            parsed.push(certified(certificate, key, &provider, now)?);
        }
        let certificates = files.certificates.iter().zip(&parsed).map(|((file, _), (_, it))| {
            LoadedCertificate { path: file.path.clone(), validity: it.validity.clone() }
        });
        let certificates = certificates.collect();
        let named = parsed.iter().map(|(key, it)| (key.clone(), it.dns_names()));
        let resolver = Arc::new(CertificateResolver::new(named));
        let versions = match config.min_version {
            MinVersion::Tls12 => &[&TLS13, &TLS12][..],
            MinVersion::Tls13 => &[&TLS13],
        };
        let unusable = |error: Error| Problem::new("certificates", error.to_string());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(unusable)?;
        let clients = client_verifier(config, files, &provider)?;
        let mut server = builder.with_client_cert_verifier(clients).with_cert_resolver(resolver);
        server.alpn_protocols = HTTP.map(<[u8]>::to_vec).into();
        // Sessions are resumed without memory of this server. A reload ends them.
        server.ticketer = ring::Ticketer::new().map_err(unusable)?;
        Ok(Self {
            config: config.clone(),
            fingerprint: files.fingerprint(),
            server: Arc::new(server),
            certificates,
        })
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(clock: &dyn Clock) -> i64 {
    (clock.now().as_micros() / 1_000_000) as i64
}

fn certified(
    certificate: &FileContent,
    key: &FileContent,
    provider: &CryptoProvider,
    now: i64,
) -> Result<(CertifiedKey, Certificate), Problem> {
    let chain = certificates(certificate)?;
    let parsed = chain.first().and_then(|first| Certificate::parse(first));
    let parsed = parsed.ok_or_else(|| certificate.problem("does not hold an X.509 certificate"))?;
    if *parsed.validity.end() < now {
        let expired = shown(*parsed.validity.end());
        let message = format!("expired at {expired}: renew it, or check this machine's clock");
        return Err(certificate.problem(&message));
    }
    if *parsed.validity.start() > now + SKEW_SECONDS {
        let start = shown(*parsed.validity.start());
        let message = format!("is not valid before {start}: check this machine's clock");
        return Err(certificate.problem(&message));
    }
    let private = PrivateKeyDer::from_pem_slice(&key.bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => key.problem(
            "has no private key in PEM: expected a block BEGIN PRIVATE KEY, not encrypted",
        ),
        error => key.problem(&format!("is not valid PEM: {error}")),
    })?;
    match CertifiedKey::from_der(chain, private, provider) {
        Ok(certified) => Ok((certified, parsed)),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            let path = certificate.path.display();
            Err(key.problem(&format!(
                "is not the key of {path}: renew both files together, or name the pair that belongs \
                 together"
            )))
        }
        Err(Error::InvalidCertificate(error)) => Err(certificate.problem(&format!(
            "cannot be used: {error:?}; expected an X.509 version 3 certificate"
        ))),
        Err(error) => Err(key.problem(&format!(
            "cannot be used: {error}; expected an RSA key of 2048 to 8192 bits, ECDSA P-256 or \
             P-384, or Ed25519"
        ))),
    }
}

fn certificates(file: &FileContent) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.bytes).collect();
    let found = found.map_err(|error| file.problem(&format!("is not valid PEM: {error}")))?;
    if found.is_empty() {
        let message = "has no certificate in PEM: expected at least one block BEGIN CERTIFICATE";
        return Err(file.problem(message));
    }
    Ok(found)
}

fn client_verifier(
    config: &TlsConfig,
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, Problem> {
    let Some(file) = &files.client_ca else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        let invalid =
            |error| file.problem(&format!("has a CA certificate that is invalid: {error}"));
        roots.add(certificate).map_err(invalid)?;
    }
    let provider = Arc::clone(provider);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = match config.client_certificates() {
        ClientCertificates::Optional => builder.allow_unauthenticated(),
        ClientCertificates::None | ClientCertificates::Required => builder,
    };
    builder.build().map_err(|error| file.problem(&format!("cannot be used: {error}")))
}

/// A time in messages.
pub(crate) fn shown(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |it| it.to_string())
}

#[cfg(test)]
mod tests;
