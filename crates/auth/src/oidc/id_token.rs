//! The nonce of an ID token.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use serde::Deserialize;

#[derive(Deserialize)]
struct Claims {
    nonce: Option<String>,
}

/// Returns the nonce of an ID token.
///
/// The signature is not verified: the token came from the issuer's token endpoint, for a code and a
/// verifier that only this server has (`OpenID` Connect Core, 3.1.3.7).
pub(super) fn nonce(token: &str) -> Option<String> {
    let payload = token.split('.').nth(1)?;
    let claims: Claims = serde_json::from_slice(&URL_SAFE.decode(payload).ok()?).ok()?;
    claims.nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_tokens_have_no_nonce() {
        let token = |claims: &str| format!("h.{}.s", URL_SAFE.encode(claims));
        assert_eq!(nonce(&token(r#"{"nonce":"n","sub":"u"}"#)).as_deref(), Some("n"));
        for other in [&*token("{}"), &*token(r#"{"nonce":1}"#), &*token("x"), "", "a.b", "a.%.c"] {
            assert_eq!(nonce(other), None, "{other}");
        }
    }
}
