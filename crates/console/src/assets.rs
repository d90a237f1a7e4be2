//! The files of the console, embedded in the binary.

use std::sync::LazyLock;

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
            REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::Response,
};
use ring::digest::{SHA256, digest};

/// Content security policy: only files of this server, and nothing inline.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// A file of the console.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! assets {
    ($($name:literal $content_type:ident),* $(,)?) => {
        [$(Asset {
            name: $name,
            content_type: $content_type,
            text: include_str!(concat!("assets/", $name)),
        }),*]
    };
}

/// The page comes first.
static ASSETS: &[Asset] = &assets![
    "console.html" HTML,
    "console.css" STYLE,
    "icon.svg" IMAGE,
    "api.js" SCRIPT,
    "audit.js" SCRIPT,
    "bars.js" SCRIPT,
    "chart.js" SCRIPT,
    "conditions.js" SCRIPT,
    "dialog.js" SCRIPT,
    "diff.js" SCRIPT,
    "dom.js" SCRIPT,
    "en.js" SCRIPT,
    "events.js" SCRIPT,
    "explain.js" SCRIPT,
    "form.js" SCRIPT,
    "format.js" SCRIPT,
    "holders.js" SCRIPT,
    "ja.js" SCRIPT,
    "main.js" SCRIPT,
    "messages.js" SCRIPT,
    "overrides.js" SCRIPT,
    "overview.js" SCRIPT,
    "pager.js" SCRIPT,
    "plans.js" SCRIPT,
    "preview.js" SCRIPT,
    "quota.js" SCRIPT,
    "quota_form.js" SCRIPT,
    "quotas.js" SCRIPT,
    "router.js" SCRIPT,
    "rule.js" SCRIPT,
    "rules.js" SCRIPT,
    "sample.js" SCRIPT,
    "selector.js" SCRIPT,
    "service.js" SCRIPT,
    "services.js" SCRIPT,
    "shell.js" SCRIPT,
    "signin.js" SCRIPT,
    "table.js" SCRIPT,
];

/// Version of each asset, in their order.
static TAGS: LazyLock<Vec<HeaderValue>> =
    LazyLock::new(|| ASSETS.iter().map(|asset| tag(asset.text)).collect());

/// Returns the page.
pub fn page(headers: &HeaderMap) -> Response {
    respond(0, headers)
}

/// Returns the file with this name, if there is one.
pub fn find(name: &str, headers: &HeaderMap) -> Option<Response> {
    let place = ASSETS.iter().position(|asset| asset.name == name)?;
    Some(respond(place, headers))
}

fn respond(place: usize, headers: &HeaderMap) -> Response {
    let (asset, tag) = (&ASSETS[place], &TAGS[place]);
    let is_known = headers.get(IF_NONE_MATCH) == Some(tag);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(asset.text) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let fixed = HeaderValue::from_static;
    for (name, value) in [
        (CONTENT_TYPE, fixed(asset.content_type)),
        (CONTENT_SECURITY_POLICY, POLICY),
        (ETAG, tag.clone()),
        // Browsers revalidate on every load.
        (CACHE_CONTROL, fixed("no-cache")),
        (REFERRER_POLICY, fixed("no-referrer")),
        (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (HeaderName::from_static("cross-origin-opener-policy"), fixed("same-origin")),
    ] {
        response.headers_mut().insert(name, value);
    }
    response
}

fn tag(text: &str) -> HeaderValue {
    let tag = format!("\"{}\"", fingerprint(text));
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Returns sixteen hexadecimal digits of a hash.
pub fn fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let (start, _) = digest.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
    format!("{:016x}", u64::from_be_bytes(*start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_load_nothing_from_elsewhere_and_have_no_inline_scripts() {
        for Asset { name, text, .. } in ASSETS {
            let text = text.replace("http://www.w3.org/", "");
            for elsewhere in ["http:", "https:", "\"//", "url(", "@import", "innerHTML", "eval("] {
                assert!(!text.contains(elsewhere), "{name} has {elsewhere}");
            }
        }
        let page = ASSETS[0].text;
        for inline in
            ["<style", "style=", "<script>", "onclick=", "onload=", "onerror=", "javascript:"]
        {
            assert!(!page.contains(inline), "{inline}");
        }
        for Asset { name, .. } in &ASSETS[1..] {
            let used = |other: &Asset| other.text.contains(name);
            assert!(ASSETS.iter().any(used), "unused: {name}");
        }
    }

    #[test]
    fn every_english_text_has_a_japanese_one() {
        let keys = |name: &str| -> Vec<&'static str> {
            let asset = ASSETS.iter().find(|asset| asset.name == name).unwrap();
            asset
                .text
                .lines()
                .filter_map(|line| line.trim().split_once("\": "))
                .map(|it| it.0)
                .collect()
        };
        let (english, japanese) = (keys("en.js"), keys("ja.js"));
        assert!(english.len() > 200);
        for key in english {
            assert!(japanese.contains(&key), "{key}");
        }
    }

    #[test]
    fn all_assets_are_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes < 200_000, "{bytes}");
    }
}
