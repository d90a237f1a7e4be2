use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

use reqwest::Url;
use thiserror::Error;

const API: [&str; 2] = ["api", "v1"];

/// The base URL of a server, or the path of its socket.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// Boxed: errors contain it.
    url: Box<Url>,
    socket: Option<PathBuf>,
}

/// Invalid server URL.
#[derive(Clone, Debug, Error)]
#[error(
    "expected http://HOST[:PORT] or https://HOST[:PORT], such as http://127.0.0.1:8080, or unix:/PATH"
)]
pub(crate) struct InvalidServer;

impl Server {
    /// Returns the URL of `path` in `area`.
    pub(super) fn url(&self, area: &str, path: &[&str]) -> Url {
        let mut url = Url::clone(&self.url);
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(API).push(area).extend(path);
        }
        url
    }

    /// Returns the URL of the liveness endpoint.
    pub(super) fn health(&self) -> Url {
        let mut url = Url::clone(&self.url);
        url.set_path("healthz");
        url
    }

    /// Returns the path of the Unix domain socket, if there is one.
    pub(super) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Whether connections use TLS.
    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether the host is this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        // IPv6 addresses are in brackets in a URL.
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for Server {
    type Err = InvalidServer;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            let url = Url::parse("http://localhost").map_err(|_| InvalidServer)?;
            return Ok(Self { url: url.into(), socket: Some(path.into()) });
        }
        let url = Url::parse(text).map_err(|_| InvalidServer)?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        // Error messages contain the URL, which must not disclose a password.
        let anonymous = url.username().is_empty() && url.password().is_none();
        let http = matches!(url.scheme(), "http" | "https");
        if http && bare && anonymous {
            Ok(Self { url: url.into(), socket: None })
        } else {
            Err(InvalidServer)
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => f.write_str(self.url.as_str().trim_end_matches('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_segments_are_escaped() {
        let server: Server = "https://limits.example/".parse().unwrap();
        assert_eq!(server.to_string(), "https://limits.example");
        let url = server.url("ratelimit", &["rules", "../../a b?c"]);
        assert_eq!(
            url.as_str(),
            "https://limits.example/api/v1/ratelimit/rules/..%2F..%2Fa%20b%3Fc"
        );
    }

    #[test]
    fn recognizes_loopback_hosts() {
        let loopback = |url: &str| url.parse::<Server>().unwrap().is_loopback();
        for url in
            ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]:8080"]
        {
            assert!(loopback(url), "{url}");
        }
        for url in ["http://localhost.example", "http://10.0.0.1", "https://[2001:db8::1]"] {
            assert!(!loopback(url), "{url}");
        }
    }

    #[test]
    fn rejects_invalid_urls() {
        for text in
            ["", "a", "a:80", "ftp://a", "http://", "http://a/b", "http://a?b", "http://u:p@a"]
        {
            assert!(text.parse::<Server>().is_err(), "{text}");
        }
    }
}
