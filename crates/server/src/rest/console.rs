//! `/console`: pages for people, and what only they need. All else they ask of the API.

mod assets;
mod cookie;
mod oidc;
mod overview;
mod preview;
mod session;

use axum::{
    http::{
        HeaderMap, HeaderName,
        header::{HOST, ORIGIN},
    },
    routing::{get, post},
};
use headgate_auth::AuthError;

use super::routes::Routes;

/// What the console's own scripts send with every request. Another site's page cannot: a browser would
/// ask this server first, which says no to all.
const MARK: HeaderName = HeaderName::from_static("x-headgate-console");

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Adds the console.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .route("/console", get(assets::page))
        .route("/console/", get(assets::page))
        .route("/console/assets/{name}", get(assets::asset))
        .route(
            "/console/session",
            get(session::show).post(session::sign_in).delete(session::sign_out),
        )
        .route("/console/oidc", get(oidc::begin))
        .route(crate::console::OIDC_CALLBACK, get(oidc::finish))
        .route("/console/overview", get(overview::overview))
        .route("/console/preview", post(preview::preview))
}

/// The session that a request's cookie names, if there is such a cookie: the reason if it is not believed.
pub(super) fn presented(headers: &HeaderMap) -> Option<Result<String, AuthError>> {
    let secret = cookie::read(headers)?;
    Some(if is_ours(headers) { Ok(secret) } else { Err(AuthError::CrossSite) })
}

/// Whether a request comes from one of the console's own pages.
fn is_ours(headers: &HeaderMap) -> bool {
    if !headers.contains_key(MARK) {
        return false;
    }
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    match (text(&SITE), text(&ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        // A browser that does not say so names the page's origin, if it changes something.
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text(&HOST)
        }
        (None, None) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        all.iter().map(header).collect()
    }

    #[test]
    fn a_cookie_is_believed_from_our_own_pages_alone() {
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
