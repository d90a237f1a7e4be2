//! The cookie that a browser shows its session with. No script can read it, and no other site's page sends it.

use std::time::Duration;

use axum::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{COOKIE, ORIGIN},
};

const NAME: &str = "headgate_session";

/// The cookie of somebody who is on their way to the issuer and back.
const WAY: &str = "headgate_sign_in";

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Longer ones are not ours.
const MAX_BYTES: usize = 128;

/// The secret of the session, if a cookie names one.
pub(super) fn read(headers: &HeaderMap) -> Option<String> {
    named(headers, NAME)
}

/// The way to the issuer that this browser is on.
pub(super) fn read_way(headers: &HeaderMap) -> Option<String> {
    named(headers, WAY)
}

fn named(headers: &HeaderMap, wanted: &str) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
    let (_, secret) = pairs.find(|(name, _)| name.trim() == wanted)?;
    let secret = secret.trim();
    (secret.len() <= MAX_BYTES).then(|| secret.to_owned())
}

/// Has the browser keep `secret` for so long.
pub(super) fn set(secure: bool, secret: &str, age: Duration) -> HeaderValue {
    written(secure, secret, age.as_secs())
}

/// Has the browser forget the secret.
pub(super) fn clear(secure: bool) -> HeaderValue {
    written(secure, "", 0)
}

/// Has the browser keep which way it is on. It comes back from another site, so that this cookie is sent then.
pub(super) fn set_way(secure: bool, state: &str, age: Duration) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let age = age.as_secs();
    let text =
        format!("{WAY}={state}; Path=/console; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

fn written(secure: bool, secret: &str, age: u64) -> HeaderValue {
    let secure = if secure { "; Secure" } else { "" };
    let text = format!("{NAME}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

/// Whether the browser asked over TLS, which ends before this server. Whoever lies about that gets a
/// cookie that their own browser will not send.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    let begins = |name: HeaderName, with: &str| {
        headers.get(name).and_then(|it| it.to_str().ok()).is_some_and(|it| it.starts_with(with))
    };
    begins(ORIGIN, "https://") || begins(FORWARDED_PROTO, "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_this_site_and_no_script() {
        let age = Duration::from_secs(60);
        let expected = "headgate_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(set(false, "abc", age), expected);
        assert_eq!(set(true, "abc", age), format!("{expected}; Secure"));
    }

    #[test]
    fn whoever_asks_over_tls_is_known_by_what_they_say() {
        let mut headers = HeaderMap::new();
        assert!(!is_secure(&headers));
        headers.insert(ORIGIN, HeaderValue::from_static("https://gate.example"));
        assert!(is_secure(&headers));
    }
}
