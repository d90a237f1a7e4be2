//! Helpers that build requests.

use std::net::IpAddr;

use headgate_guard::{Cidr, ForwardedBy, TrustedProxies};
use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const XFF: &str = "x-forwarded-for";
pub(crate) const FWD: &str = "forwarded";
pub(crate) const REAL: &str = "x-real-ip";

/// 10.0.0.0/8 and `fd00::/8`, which write `header`.
pub(crate) fn proxies(header: ForwardedBy) -> TrustedProxies {
    ["10.0.0.0/8", "fd00::/8"]
        .map(|range| range.parse::<Cidr>().unwrap())
        .into_iter()
        .collect::<TrustedProxies>()
        .forwarded_by(header)
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn headers<V: AsRef<[u8]>>(lines: &[(&'static str, V)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, V)| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_ref()).unwrap())
    };
    let mut headers = HeaderMap::new();
    for (name, value) in lines.iter().map(line) {
        headers.append(name, value);
    }
    headers
}
