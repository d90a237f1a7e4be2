//! The origins that the issuer may send browsers back to.

use reqwest::Url;

use crate::HttpUrl;

/// The configured URLs of this server. The `Host` of a request only selects one of them: an
/// attacker who could redirect codes elsewhere would sign in as another user.
pub struct RedirectOrigins {
    urls: Vec<Url>,
    /// Scheme of loopback addresses, which need not be listed if the server listens on loopback
    /// only.
    local_scheme: Option<&'static str>,
}

impl RedirectOrigins {
    /// Accepts `urls`, the first one by default; without any, loopback addresses with
    /// `local_scheme`, if there is one.
    pub fn new<'u>(
        urls: impl IntoIterator<Item = &'u HttpUrl>,
        local_scheme: Option<&'static str>,
    ) -> Self {
        Self { urls: urls.into_iter().map(|url| url.get().clone()).collect(), local_scheme }
    }

    /// Returns `true` if browsers reach the server over TLS.
    pub(super) fn is_over_tls(&self) -> bool {
        let scheme = self.urls.first().map(Url::scheme).or(self.local_scheme);
        scheme == Some("https")
    }

    /// Returns the origin for a browser that asked for `host`: the URL with that host, or else the
    /// first one. `None` if there is no URL and `host` is not a loopback address of a local server.
    pub(super) fn origin(&self, host: &str) -> Option<String> {
        let named = self.urls.iter().find(|url| authority(url).eq_ignore_ascii_case(host));
        if let Some(url) = named.or(self.urls.first()) {
            return Some(url.as_str().trim_end_matches('/').to_owned());
        }
        let scheme = self.local_scheme?;
        let url = Url::parse(&format!("{scheme}://{host}/")).ok()?;
        let default_port = if scheme == "https" { ":443" } else { ":80" };
        let plain = authority(&url).eq_ignore_ascii_case(host.trim_end_matches(default_port));
        (plain && is_loopback(&url)).then(|| format!("{scheme}://{}", authority(&url)))
    }
}

/// Returns host and port as a browser writes them into `Host`.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(urls: &[&str], local_scheme: Option<&'static str>) -> RedirectOrigins {
        let urls = urls.iter().map(|url| Url::parse(url).unwrap()).collect();
        RedirectOrigins { urls, local_scheme }
    }

    #[test]
    fn a_host_only_selects_one_of_the_urls() {
        let listed = origins(&["https://gate.example", "https://gate.internal:8443/"], None);
        for (host, origin) in [
            ("gate.example", "https://gate.example"),
            ("Gate.Internal:8443", "https://gate.internal:8443"),
            ("gate.internal", "https://gate.example"),
            ("evil.example", "https://gate.example"),
            ("localhost:8080", "https://gate.example"),
            ("", "https://gate.example"),
        ] {
            assert_eq!(listed.origin(host).as_deref(), Some(origin), "{host}");
        }
        assert!(listed.is_over_tls());
    }

    #[test]
    fn loopback_addresses_need_no_url_on_a_local_server() {
        let (own, over_tls) = (origins(&[], Some("http")), origins(&[], Some("https")));
        assert!(!own.is_over_tls() && over_tls.is_over_tls());
        for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "127.0.0.1", "localhost"] {
            assert_eq!(own.origin(host), Some(format!("http://{host}")));
            assert_eq!(over_tls.origin(host), Some(format!("https://{host}")));
            assert_eq!(origins(&[], None).origin(host), None, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "evil@localhost",
            "localhost/x",
            "localhost?x",
            "localhost#x",
            "",
            "[::2]:80",
        ] {
            assert_eq!(own.origin(host), None, "{host}");
        }
    }
}
