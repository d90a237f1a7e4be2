//! The public keys of an issuer, read from a JWK Set.

use std::{collections::HashMap, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// A signature algorithm. Each type of key has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

/// A key that verifies signatures of the issuer.
#[derive(Clone, Debug)]
pub(crate) enum PublicKey {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    P256(UnparsedPublicKey<Vec<u8>>),
    Ed25519(UnparsedPublicKey<Vec<u8>>),
}

/// Keys by their `kid`.
#[derive(Debug, Default)]
pub(crate) struct KeySet(HashMap<String, Arc<PublicKey>>);

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kid: String,
    #[serde(rename = "use")]
    purpose: Option<String>,
    alg: Option<String>,
    #[serde(flatten)]
    material: Material,
}

#[derive(Deserialize)]
#[serde(tag = "kty")]
enum Material {
    #[serde(rename = "RSA")]
    Rsa { n: String, e: String },
    #[serde(rename = "EC")]
    Curve { crv: String, x: String, y: String },
    #[serde(rename = "OKP")]
    Edwards { crv: String, x: String },
}

// === impl Algorithm ===

impl Algorithm {
    /// Returns the algorithm with this name in a token's header, if it is accepted.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

// === impl KeySet ===

impl KeySet {
    /// Parses a JWK Set. Keys of other types and for other uses are skipped.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        let set: JwkSet = serde_json::from_slice(json)?;
        let jwks = set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        Ok(Self(jwks.filter_map(Jwk::into_entry).collect()))
    }

    pub(crate) fn get(&self, kid: &str) -> Option<&Arc<PublicKey>> {
        self.0.get(kid)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

// === impl PublicKey ===

impl PublicKey {
    /// Returns the only algorithm of this key.
    pub(crate) const fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(_) => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// Returns `true` if `signature` of `message` was made with this key.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Rsa(key) => key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature),
            Self::P256(key) | Self::Ed25519(key) => key.verify(message, signature),
        };
        verified.is_ok()
    }
}

// === impl Jwk ===

impl Jwk {
    fn into_entry(self) -> Option<(String, Arc<PublicKey>)> {
        let key = self.material.public_key()?;
        let for_signatures = self.purpose.is_none_or(|purpose| purpose == "sig");
        let fits = self.alg.is_none_or(|alg| Algorithm::from_name(&alg) == Some(key.algorithm()));
        (for_signatures && fits).then(|| (self.kid, Arc::new(key)))
    }
}

impl Material {
    fn public_key(&self) -> Option<PublicKey> {
        match self {
            Self::Rsa { n, e } => {
                Some(PublicKey::Rsa(RsaPublicKeyComponents { n: number(n)?, e: number(e)? }))
            }
            Self::Curve { crv, x, y } if crv == "P-256" => {
                // An uncompressed point in the encoding of SEC 1.
                let point = [&[4][..], &coordinate(x)?, &coordinate(y)?].concat();
                Some(PublicKey::P256(UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)))
            }
            Self::Edwards { crv, x } if crv == "Ed25519" => {
                let point = coordinate(x)?.to_vec();
                Some(PublicKey::Ed25519(UnparsedPublicKey::new(&ED25519, point)))
            }
            Self::Curve { .. } | Self::Edwards { .. } => None,
        }
    }
}

/// Decodes a number without the leading zeros that some issuers write.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = URL_SAFE.decode(text).ok()?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    Some(bytes[zeros..].to_vec())
}

fn coordinate(text: &str) -> Option<[u8; 32]> {
    URL_SAFE.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use headgate_testkit::{Algorithm as Way, SigningKey};
    use serde_json::json;

    use super::*;

    fn set(keys: &[Value]) -> KeySet {
        KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn each_type_of_key_has_its_algorithm() {
        let keys = [("r", Way::Rs256), ("p", Way::Es256), ("e", Way::EdDsa)];
        let set = set(&keys.map(|(kid, way)| SigningKey::generate(kid, way).jwk()));
        let algorithm = |kid| set.get(kid).unwrap().algorithm();
        assert_eq!(algorithm("r"), Algorithm::Rs256);
        assert_eq!(algorithm("p"), Algorithm::Es256);
        assert_eq!(algorithm("e"), Algorithm::EdDsa);
    }

    #[test]
    fn unusable_keys_are_skipped() {
        let good = SigningKey::generate("good", Way::EdDsa).jwk();
        let but = |name: &str, value: Value| {
            let mut key = good.clone();
            key["kid"] = "bad".into();
            key[name] = value;
            key
        };
        let bad = [
            but("use", json!("enc")),
            but("alg", json!("RS256")),
            but("crv", json!("Ed448")),
            but("kty", json!("oct")),
            but("x", json!("AAAA")),
            but("x", json!("not base64!")),
            but("kid", json!(null)),
            json!(7),
        ];
        let set = set(&[&bad[..], std::slice::from_ref(&good)].concat());
        assert_eq!(set.len(), 1);
        assert!(set.get("good").is_some());
    }

    #[test]
    fn leading_zeros_are_dropped() {
        assert_eq!(number(&URL_SAFE.encode([0, 0, 1, 0])), Some(vec![1, 0]));
        assert_eq!(number(&URL_SAFE.encode([1, 0, 1])), Some(vec![1, 0, 1]));
    }
}
