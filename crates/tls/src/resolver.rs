//! Picking a certificate by the name that the client asks for.

use std::{collections::HashMap, sync::Arc};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// Certificates by name. Clients that ask for an unknown name, or for none, get the first one.
#[derive(Debug)]
pub(crate) struct CertificateResolver {
    certificates: Vec<Arc<CertifiedKey>>,
    /// Certificates of a DNS name in lower case; a wildcard is `*.` and the rest.
    by_name: HashMap<String, Vec<usize>>,
}

impl CertificateResolver {
    pub(crate) fn new<'a, N>(certificates: impl IntoIterator<Item = (CertifiedKey, N)>) -> Self
    where
        N: IntoIterator<Item = &'a str>,
    {
        let mut resolver = Self { certificates: Vec::new(), by_name: HashMap::new() };
        for (certificate, names) in certificates {
            let place = resolver.certificates.len();
            for name in names {
                resolver.by_name.entry(name.to_owned()).or_default().push(place);
            }
            resolver.certificates.push(Arc::new(certificate));
        }
        resolver
    }

    fn places(&self, name: &str) -> Option<&[usize]> {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let wildcard = || Some(format!("*.{}", name.split_once('.')?.1));
        let found = self.by_name.get(&name).or_else(|| self.by_name.get(&wildcard()?));
        found.map(Vec::as_slice)
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().and_then(|name| self.places(name)).unwrap_or(&[0]);
        let named = || named.iter().filter_map(|place| self.certificates.get(*place));
        // A name may have an ECDSA and an RSA certificate.
        let fits =
            |one: &&Arc<CertifiedKey>| one.key.choose_scheme(hello.signature_schemes()).is_some();
        named().find(fits).or_else(|| named().next()).cloned()
    }
}
