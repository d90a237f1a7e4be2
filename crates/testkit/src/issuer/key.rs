use std::{
    fs,
    process::Command,
    sync::{Arc, OnceLock},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RsaKeyPair, RsaPublicKeyComponents,
    },
};
use serde_json::{Value, json};

/// Signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with 2048 bits. All keys of a process are the same, because generating one is slow.
    Rs256,
    /// ECDSA on P-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// A key that an issuer signs with.
pub struct SigningKey {
    kid: String,
    pair: Pair,
}

enum Pair {
    Rsa(Arc<RsaKeyPair>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

// === impl Algorithm ===

impl Algorithm {
    const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

// === impl SigningKey ===

impl SigningKey {
    /// Generates a key named `kid`.
    ///
    /// # Panics
    ///
    /// If `openssl`, which generates RSA keys, is not installed.
    pub fn generate(kid: &str, algorithm: Algorithm) -> Self {
        let random = SystemRandom::new();
        let pair = match algorithm {
            Algorithm::Rs256 => Pair::Rsa(rsa()),
            Algorithm::Es256 => {
                let way = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let pkcs8 = EcdsaKeyPair::generate_pkcs8(way, &random).expect("a P-256 key");
                let pair = EcdsaKeyPair::from_pkcs8(way, pkcs8.as_ref(), &random);
                Pair::P256(pair.expect("the key just made"))
            }
            Algorithm::EdDsa => {
                let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).expect("an Ed25519 key");
                let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref());
                Pair::Ed25519(pair.expect("the key just made"))
            }
        };
        Self { kid: kid.to_owned(), pair }
    }

    /// Name of the key.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public key as a JWK.
    pub fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (URL_SAFE.encode(public.n), URL_SAFE.encode(public.e));
                json!({"kty": "RSA", "n": n, "e": e})
            }
            Pair::P256(pair) => {
                // An uncompressed point: 4, then two coordinates.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                let (x, y) = (URL_SAFE.encode(x), URL_SAFE.encode(y));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE.encode(pair.public_key())})
            }
        };
        jwk["kid"] = self.kid.clone().into();
        jwk["use"] = "sig".into();
        jwk["alg"] = self.algorithm().name().into();
        jwk
    }

    /// A token with exactly these claims.
    pub fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm().name(), "kid": self.kid, "typ": "JWT"});
        self.sign_with(&header, claims)
    }

    /// A token with exactly this header and these claims.
    pub fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let parts = [header, claims].map(|part| URL_SAFE.encode(part.to_string()));
        let message = parts.join(".");
        let signature = URL_SAFE.encode(self.signature(message.as_bytes()));
        format!("{message}.{signature}")
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .expect("an RSA signature");
                signature
            }
            Pair::P256(pair) => {
                pair.sign(&random, message).expect("a P-256 signature").as_ref().to_vec()
            }
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    const fn algorithm(&self) -> Algorithm {
        match &self.pair {
            Pair::Rsa(_) => Algorithm::Rs256,
            Pair::P256(_) => Algorithm::Es256,
            Pair::Ed25519(_) => Algorithm::EdDsa,
        }
    }
}

fn rsa() -> Arc<RsaKeyPair> {
    static PAIR: OnceLock<Arc<RsaKeyPair>> = OnceLock::new();
    let make = || {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key.der");
        let made = Command::new("openssl")
            .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
            .args(["-outform", "DER", "-out"])
            .arg(&file)
            .output()
            .expect("openssl on PATH");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let der = fs::read(&file).expect("the key that openssl made");
        // The format depends on the version of openssl.
        let pair = RsaKeyPair::from_pkcs8(&der).or_else(|_| RsaKeyPair::from_der(&der));
        Arc::new(pair.expect("an RSA key"))
    };
    Arc::clone(PAIR.get_or_init(make))
}
