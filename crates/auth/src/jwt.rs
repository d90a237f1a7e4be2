//! JWTs that an issuer signed: RFC 7519 in the compact form of RFC 7515.
//!
//! Tokens that are invalid by themselves are rejected before their key is looked up.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate::{Clock, Timestamp};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};

use crate::{
    Actor, TokenError,
    claims::{Claims, ExpectedClaims},
    jwks::Jwks,
    key::Algorithm,
};

/// Verifies the JWTs of one issuer.
pub(crate) struct JwtVerifier {
    pub(crate) keys: Jwks,
    pub(crate) expected: ExpectedClaims,
    pub(crate) clock: Arc<dyn Clock>,
}

/// A token that was taken apart. Nothing in it can be trusted before its signature is verified.
struct UnverifiedJwt<'t> {
    kid: String,
    algorithm: Algorithm,
    /// The signed part: header and claims as they were sent.
    message: &'t [u8],
    claims: &'t [u8],
    signature: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood; none is supported.
    crit: Option<IgnoredAny>,
}

// === impl JwtVerifier ===

impl JwtVerifier {
    /// Returns the actor that `token` names, and the time at which the token expires. Waits for the
    /// issuer only if the key of the token is not cached.
    pub(crate) async fn verify(&self, token: &[u8]) -> Result<(Actor, Timestamp), TokenError> {
        let jwt = UnverifiedJwt::parse(token)?;
        let key = self.keys.find(&jwt.kid).await.ok_or(TokenError::UnknownKey)?;
        if key.algorithm() != jwt.algorithm {
            return Err(TokenError::Algorithm);
        }
        if !key.verifies(jwt.message, &jwt.signature) {
            return Err(TokenError::Signature);
        }
        let claims: Claims = json(jwt.claims).ok_or(TokenError::Claims)?;
        let actor = self.expected.actor(&claims, self.clock.now())?;
        Ok((actor, self.expected.expires_at(&claims)))
    }
}

// === impl UnverifiedJwt ===

impl<'t> UnverifiedJwt<'t> {
    fn parse(token: &'t [u8]) -> Result<Self, TokenError> {
        let mut parts = token.split(|byte| *byte == b'.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(TokenError::Malformed);
        };
        let message = &token[..=header.len() + claims.len()];
        let header: Header = json(header).ok_or(TokenError::Malformed)?;
        let algorithm = Algorithm::from_name(&header.alg).ok_or(TokenError::Algorithm)?;
        if header.crit.is_some() {
            return Err(TokenError::Malformed);
        }
        let kid = header.kid.filter(|kid| !kid.is_empty()).ok_or(TokenError::NoKeyId)?;
        let signature = URL_SAFE.decode(signature).map_err(|_| TokenError::Malformed)?;
        Ok(Self { kid, algorithm, message, claims, signature })
    }
}

fn json<T: DeserializeOwned>(encoded: &[u8]) -> Option<T> {
    let json = URL_SAFE.decode(encoded).ok()?;
    // Serde would accept a list as an object without names.
    let is_object = json.trim_ascii_start().first() == Some(&b'{');
    is_object.then(|| serde_json::from_slice(&json).ok())?
}
