//! Tokens that an issuer signed: RFC 7519 in the compact form of RFC 7515.
//!
//! Everything that can be refused by looking at the token alone is, before a key is looked for.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate::{Clock, Timestamp};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};

use super::{
    Actor,
    claims::{Claims, Expected},
    error::Refusal,
    jwks::Jwks,
    key::Algorithm,
};

/// Knows an issuer's tokens.
pub(super) struct Jwt {
    pub(super) keys: Jwks,
    pub(super) expected: Expected,
    pub(super) clock: Arc<dyn Clock>,
}

/// A token taken apart. Nothing in it is true until its signature is.
struct Parts<'t> {
    kid: String,
    algorithm: Algorithm,
    /// What is signed: header and claims as they were sent.
    message: &'t [u8],
    claims: &'t [u8],
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood, which none is.
    crit: Option<IgnoredAny>,
}

// === impl Jwt ===

impl Jwt {
    /// Who bears `token`. Waits for the issuer only when it names a key that is not known yet.
    pub(super) async fn bearer(&self, token: &[u8]) -> Result<Actor, Refusal> {
        Ok(self.proof(token).await?.0)
    }

    /// Who bears `token`, and until when it says so.
    pub(super) async fn proof(&self, token: &[u8]) -> Result<(Actor, Timestamp), Refusal> {
        let parts = Parts::of(token)?;
        let key = self.keys.find(&parts.kid).await.ok_or(Refusal::UnknownKey)?;
        if key.algorithm() != parts.algorithm {
            return Err(Refusal::Algorithm);
        }
        if !key.signed(parts.message, &parts.signature) {
            return Err(Refusal::Signature);
        }
        let claims: Claims = json(parts.claims).ok_or(Refusal::Claims)?;
        Ok((self.expected.actor(&claims, self.clock.now())?, self.expected.end(&claims)))
    }
}

// === impl Parts ===

impl<'t> Parts<'t> {
    fn of(token: &'t [u8]) -> Result<Self, Refusal> {
        let mut parts = token.split(|byte| *byte == b'.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Refusal::Malformed);
        };
        let message = &token[..=header.len() + claims.len()];
        let header: Header = json(header).ok_or(Refusal::Malformed)?;
        let algorithm = Algorithm::named(&header.alg).ok_or(Refusal::Algorithm)?;
        if header.crit.is_some() {
            return Err(Refusal::Malformed);
        }
        let kid = header.kid.filter(|kid| !kid.is_empty()).ok_or(Refusal::NoKeyId)?;
        let signature = URL_SAFE.decode(signature).map_err(|_| Refusal::Malformed)?;
        Ok(Self { kid, algorithm, message, claims, signature })
    }
}

fn json<T: DeserializeOwned>(encoded: &[u8]) -> Option<T> {
    serde_json::from_slice(&URL_SAFE.decode(encoded).ok()?).ok()
}
