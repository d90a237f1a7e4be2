//! The session cookie of the console. No script can read it, and pages of other sites cannot send
//! it.

use std::time::Duration;

use axum::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{COOKIE, HOST, ORIGIN},
};
use headgate_auth::AuthError;

const NAME: &str = "headgate_session";

/// The cookie of a sign-in at the issuer that is in progress.
const WAY: &str = "headgate_sign_in";

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Sent by the console's scripts with every request. Other sites cannot: browsers would ask with a
/// preflight request, which this server refuses.
const MARK: HeaderName = HeaderName::from_static("x-headgate-console");

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Longest cookie of ours.
const MAX_BYTES: usize = 128;

/// The secret of the session, if there is such a cookie.
pub fn read(headers: &HeaderMap) -> Option<String> {
    named(headers, NAME)
}

/// The state of the sign-in in progress.
pub fn read_way(headers: &HeaderMap) -> Option<String> {
    named(headers, WAY)
}

fn named(headers: &HeaderMap, wanted: &str) -> Option<String> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|it| it.split_once('='));
    let (_, secret) = pairs.find(|(name, _)| name.trim() == wanted)?;
    let secret = secret.trim();
    (secret.len() <= MAX_BYTES).then(|| secret.to_owned())
}

/// A header that sets the cookie for `age`.
pub fn set(secure: bool, secret: &str, age: Duration) -> HeaderValue {
    written(secure, secret, age.as_secs())
}

/// A header that deletes the cookie.
pub fn clear(secure: bool) -> HeaderValue {
    written(secure, "", 0)
}

/// A header that sets the cookie of a sign-in. Browsers send it when they return from the issuer's
/// site.
pub fn set_way(secure: bool, state: &str, age: Duration) -> HeaderValue {
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

/// Returns true if a proxy terminated the browser's TLS. A client that lies gets a cookie that its
/// own browser will not send.
pub fn is_secure(headers: &HeaderMap) -> bool {
    let begins = |name: HeaderName, with: &str| {
        headers.get(name).and_then(|it| it.to_str().ok()).is_some_and(|it| it.starts_with(with))
    };
    begins(ORIGIN, "https://") || begins(FORWARDED_PROTO, "https")
}

/// The session secret of a request, if it has one; an error if the request may come from another
/// site.
pub fn presented(headers: &HeaderMap) -> Option<Result<String, AuthError>> {
    let secret = read(headers)?;
    Some(if is_ours(headers) { Ok(secret) } else { Err(AuthError::CrossSite) })
}

/// Returns true if a request comes from a page of the console.
pub fn is_ours(headers: &HeaderMap) -> bool {
    if !headers.contains_key(MARK) {
        return false;
    }
    text(headers, &SITE).is_none_or(|site| site == "same-origin") && !is_cross_site(headers)
}

/// Returns true if a request may come from another site's page.
pub fn is_cross_site(headers: &HeaderMap) -> bool {
    match (text(headers, &SITE), text(headers, &ORIGIN)) {
        // `none`: a person has entered the address.
        (Some(site), _) => !matches!(site, "same-origin" | "none"),
        // Older browsers send only the origin, and only with changes.
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_none() || host != text(headers, &HOST)
        }
        (None, None) => false,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_same_site_and_hidden_from_scripts() {
        let age = Duration::from_secs(60);
        let expected = "headgate_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Strict";
        assert_eq!(set(false, "abc", age), expected);
        assert_eq!(set(true, "abc", age), format!("{expected}; Secure"));
    }

    #[test]
    fn recognises_tls_by_the_origin() {
        let mut headers = HeaderMap::new();
        assert!(!is_secure(&headers));
        headers.insert(ORIGIN, HeaderValue::from_static("https://gate.example"));
        assert!(is_secure(&headers));
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        all.iter().map(header).collect()
    }

    #[test]
    fn accepts_the_cookie_only_from_our_own_pages() {
        let cookie = ("cookie", "a=b; headgate_session=secret; c=d");
        let (mark, host) = (("x-headgate-console", "1"), ("host", "gate:8080"));
        let believed = |more: &[(&'static str, &'static str)]| {
            presented(&headers(&[&[cookie, host], more].concat())).unwrap().is_ok()
        };
        assert!(believed(&[mark]));
        assert!(believed(&[mark, ("sec-fetch-site", "same-origin")]));
        assert!(believed(&[mark, ("origin", "http://gate:8080")]));
        assert!(!believed(&[]));
        assert!(!believed(&[("sec-fetch-site", "same-origin")]));
        for site in ["cross-site", "same-site", "none"] {
            assert!(!believed(&[mark, ("sec-fetch-site", site)]), "{site}");
        }
        for origin in ["http://evil.example", "null", "http://gate"] {
            assert!(!believed(&[mark, ("origin", origin)]), "{origin}");
        }
        assert!(presented(&headers(&[("cookie", "other=1"), mark])).is_none());
    }
}
