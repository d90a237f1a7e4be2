//! Where people come back to from the issuer.

use reqwest::Url;

use crate::config::Config;

/// Where browsers find this server, as the operator says. What a request has as its `Host` only picks one of
/// these: whoever could have the issuer send codes elsewhere would sign in as somebody else.
pub(super) struct WayBack {
    urls: Vec<Url>,
    /// Whether only this machine can ask: then loopback addresses need not be listed.
    local: bool,
}

impl WayBack {
    pub(super) fn new(config: &Config) -> Self {
        let console = &config.console;
        let urls = console.public_url.iter().chain(&console.other_urls);
        let urls = urls.map(|url| url.get().clone()).collect();
        Self { urls, local: config.server.address().ip().is_loopback() }
    }

    /// Whether browsers find the server over TLS.
    pub(super) fn is_over_tls(&self) -> bool {
        self.urls.first().is_some_and(|url| url.scheme() == "https")
    }

    /// The origin for a browser that asked for `host`: the listed one of that name, else the first; `None`
    /// if none is listed and `host` is no loopback address.
    pub(super) fn origin(&self, host: &str) -> Option<String> {
        let named = self.urls.iter().find(|url| authority(url).eq_ignore_ascii_case(host));
        if let Some(url) = named.or(self.urls.first()) {
            return Some(url.as_str().trim_end_matches('/').to_owned());
        }
        let url = Url::parse(&format!("http://{host}/")).ok()?;
        let plain = authority(&url).eq_ignore_ascii_case(host.trim_end_matches(":80"));
        (self.local && plain && is_loopback(&url)).then(|| format!("http://{}", authority(&url)))
    }
}

/// The host and the port, as a browser writes them into `Host`.
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

    fn way_back(urls: &[&str], local: bool) -> WayBack {
        WayBack { urls: urls.iter().map(|url| Url::parse(url).unwrap()).collect(), local }
    }

    #[test]
    fn a_host_only_picks_one_of_the_listed_urls() {
        let listed = way_back(&["https://gate.example", "https://gate.internal:8443/"], false);
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
    fn loopback_addresses_need_no_list_on_a_server_for_this_machine() {
        let own = way_back(&[], true);
        for host in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "127.0.0.1", "localhost"] {
            assert_eq!(own.origin(host), Some(format!("http://{host}")));
            assert_eq!(way_back(&[], false).origin(host), None, "{host}");
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
