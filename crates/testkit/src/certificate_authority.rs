use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ED25519, SanType, date_time_ymd,
};

/// Issues certificates for servers and clients.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// Time during which a certificate is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validity {
    /// From 2020 to 2049.
    #[default]
    Long,
    /// From 2020 to 2021.
    Expired,
    /// From 2048 to 2049.
    Future,
}

// === impl CertificateAuthority ===

impl CertificateAuthority {
    /// Creates an authority with a new key.
    ///
    /// # Panics
    ///
    /// If there is no randomness for a key.
    pub fn new(name: &str) -> Self {
        let mut params = params(name, Validity::Long);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The certificate of the authority.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Writes the certificate of the authority into a folder.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn write(&self, folder: &Path) -> PathBuf {
        write(folder.join("ca.crt"), &self.pem)
    }

    /// Issues a certificate with these names: IP addresses, DNS names, URIs or e-mail addresses.
    pub fn issue(&self, names: &[&str]) -> IssuedCertificate {
        self.issue_valid(names, Validity::Long)
    }

    /// Issues a certificate that is valid at certain times only.
    ///
    /// # Panics
    ///
    /// If a name is invalid.
    pub fn issue_valid(&self, names: &[&str], validity: Validity) -> IssuedCertificate {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        self.sign(names, validity, &key)
    }

    /// Issues a certificate with an Ed25519 key, which some clients do not support.
    ///
    /// # Panics
    ///
    /// If a name is invalid.
    pub fn issue_ed25519(&self, names: &[&str]) -> IssuedCertificate {
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        self.sign(names, Validity::Long, &key)
    }

    fn sign(&self, names: &[&str], validity: Validity, key: &KeyPair) -> IssuedCertificate {
        let mut params = params("headgate test", validity);
        params.subject_alt_names = names.iter().map(|name| san(name)).collect();
        let certificate = params.signed_by(key, &self.issuer).expect("a certificate");
        IssuedCertificate { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

// === impl IssuedCertificate ===

impl IssuedCertificate {
    /// Writes `NAME.crt` and `NAME.key` into a folder. Returns their paths.
    ///
    /// # Panics
    ///
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let certificate = folder.join(format!("{name}.crt"));
        let key = folder.join(format!("{name}.key"));
        (write(certificate, &self.certificate), write(key, &self.key))
    }
}

fn params(name: &str, validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    let (from, until) = match validity {
        Validity::Long => (2020, 2049),
        Validity::Expired => (2020, 2021),
        Validity::Future => (2048, 2049),
    };
    params.not_before = date_time_ymd(from, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    params
}

fn san(name: &str) -> SanType {
    let text = || name.try_into().expect("a name in ASCII");
    match name.parse() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) if name.contains("://") => SanType::URI(text()),
        Err(_) if name.contains('@') => SanType::Rfc822Name(text()),
        Err(_) => SanType::DnsName(text()),
    }
}

/// Replaces a file at once, as tools that renew certificates do.
fn write(path: PathBuf, text: &str) -> PathBuf {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file can be written");
    fs::rename(&new, &path).expect("a file can be replaced");
    path
}
