use std::{fmt, path::PathBuf, time::Duration};

use headgate_config::{Bounded, Print, Printed, Problem, print_sections, quoted};
use reqwest::Url;
use serde::Deserialize;

/// The management server that says what is limited, in place of files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct XdsConfig {
    /// `envoy.xds.url`: where it is: `http://host:port`, or `https://host:port` for TLS.
    pub url: Option<XdsUrl>,
    /// `envoy.xds.node_id`: the node whose configuration is asked for.
    pub node_id: NodeId,
    /// `envoy.xds.ca_file`: the authorities that signed its certificate, in PEM; the system's unless set.
    pub ca_file: Option<PathBuf>,
    /// `envoy.xds.cert_file`: the certificate that it knows this server by, in PEM.
    pub cert_file: Option<PathBuf>,
    /// `envoy.xds.key_file`: its private key, in PEM.
    pub key_file: Option<PathBuf>,
    /// `envoy.xds.server_name`: the name in its certificate, where that is not the URL's host.
    pub server_name: Option<String>,
    /// `envoy.xds.connect_timeout_seconds`: how long to wait for a connection.
    pub connect_timeout_seconds: Bounded<1, 60>,
    /// `envoy.xds.initial_wait_seconds`: how long readiness waits for the first configuration.
    pub initial_wait_seconds: Bounded<0, 3600>,
    /// `envoy.xds.max_message_bytes`: the largest configuration that is read.
    pub max_message_bytes: Bounded<65_536, 268_435_456>,
}

/// The address of a management server.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct XdsUrl(Url);

/// Whose configuration is asked for.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct NodeId(String);

// === impl XdsConfig ===

impl XdsConfig {
    pub(crate) const fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.connect_timeout_seconds.get())
    }

    pub(crate) const fn initial_wait(&self) -> Duration {
        Duration::from_secs(self.initial_wait_seconds.get())
    }

    /// What each key accepts by itself but the section cannot.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: &str| {
            problems.push(Problem::new(format!("envoy.xds.{key}"), message));
        };
        let of_tls = [
            ("ca_file", self.ca_file.is_some()),
            ("cert_file", self.cert_file.is_some()),
            ("key_file", self.key_file.is_some()),
            ("server_name", self.server_name.is_some()),
        ];
        if !self.url.as_ref().is_some_and(XdsUrl::is_https) {
            for (key, _) in of_tls.into_iter().filter(|(_, given)| *given) {
                wrong(key, "only used with TLS: set envoy.xds.url to an https:// address");
            }
        }
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => wrong("key_file", "envoy.xds.cert_file needs its private key"),
            (None, Some(_)) => wrong("cert_file", "envoy.xds.key_file needs its certificate"),
            _ => {}
        }
        problems
    }
}

impl Default for XdsConfig {
    fn default() -> Self {
        Self {
            url: None,
            node_id: NodeId("default".to_owned()),
            ca_file: None,
            cert_file: None,
            key_file: None,
            server_name: None,
            connect_timeout_seconds: Bounded::of::<5>(),
            initial_wait_seconds: Bounded::of::<15>(),
            max_message_bytes: Bounded::of::<16_777_216>(),
        }
    }
}

// === impl XdsUrl ===

impl XdsUrl {
    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }
}

impl fmt::Display for XdsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for XdsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for XdsUrl {
    type Error = String;

    /// A URL that holds a password is not shown.
    fn try_from(text: String) -> Result<Self, String> {
        let fits = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
        };
        Url::parse(&text).ok().filter(fits).map(Self).ok_or_else(|| {
            "expected a URL such as http://127.0.0.1:18000 or https://envoy-gateway:18001"
                .to_owned()
        })
    }
}

// === impl NodeId ===

impl NodeId {
    const MAX_BYTES: usize = 256;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NodeId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if (1..=Self::MAX_BYTES).contains(&text.len()) {
            return Ok(Self(text));
        }
        Err(format!("expected 1 to {} bytes, got {}", Self::MAX_BYTES, quoted(&text)))
    }
}

// === impl Print ===

print_sections! {
    XdsConfig {
        url, node_id, ca_file, cert_file, key_file, server_name, connect_timeout_seconds,
        initial_wait_seconds, max_message_bytes,
    }
}

impl Print for XdsUrl {
    fn print(&self) -> Printed {
        Printed::scalar(self.to_string())
    }
}

impl Print for NodeId {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}
