use std::{fmt, path::PathBuf, time::Duration};

use headgate_config::{Bounded, Print, Printed, Problem, print_sections, quoted};
use headgate_tls_client::TlsFiles;
use serde::Deserialize;
use url::Url;

/// The `envoy.xds` section: the management server that sends the domains, instead of files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct XdsConfig {
    /// `envoy.xds.url`: address of the server: `http://host:port`, or `https://host:port` for TLS.
    pub url: Option<XdsUrl>,
    /// `envoy.xds.node_id`: node whose configuration is requested.
    pub node_id: NodeId,
    /// `envoy.xds.ca_file`: authorities of the server's certificate, in PEM; default: the system's.
    pub ca_file: Option<PathBuf>,
    /// `envoy.xds.cert_file`: client certificate, in PEM.
    pub cert_file: Option<PathBuf>,
    /// `envoy.xds.key_file`: private key of the client certificate, in PEM.
    pub key_file: Option<PathBuf>,
    /// `envoy.xds.server_name`: name in the server's certificate, if it is not the URL's host.
    pub server_name: Option<String>,
    /// `envoy.xds.connect_timeout_seconds`: timeout of a connection attempt.
    pub connect_timeout_seconds: Bounded<1, 60>,
    /// `envoy.xds.initial_wait_seconds`: timeout of readiness waiting for the first configuration.
    pub initial_wait_seconds: Bounded<0, 3600>,
    /// `envoy.xds.max_message_bytes`: maximum size of a configuration.
    pub max_message_bytes: Bounded<65_536, 268_435_456>,
}

/// Address of a management server.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct XdsUrl(Url);

/// Node whose configuration is requested.
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

    pub(crate) fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
        }
    }

    /// Validates the keys together, and returns the problems.
    pub(super) fn validate(&self) -> Vec<Problem> {
        const REMEDY: &str = "set envoy.xds.url to an https:// address";
        let is_tls = self.url.as_ref().is_some_and(XdsUrl::is_https);
        let without_tls = (!is_tls).then_some(REMEDY);
        let mut problems = self.tls_files().contradictions("envoy.xds", without_tls);
        if self.server_name.is_some() && !is_tls {
            problems.push(("server_name", format!("only used with TLS: {REMEDY}")));
        }
        let under = |key| format!("envoy.xds.{key}");
        problems.into_iter().map(|(key, message)| Problem::new(under(key), message)).collect()
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

    /// The error does not quote the URL: it may hold a password.
    fn try_from(text: String) -> Result<Self, String> {
        let is_origin = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
        };
        Url::parse(&text).ok().filter(is_origin).map(Self).ok_or_else(|| {
            "expected a URL such as http://127.0.0.1:18000 or https://envoy-gateway:18001"
                .to_owned()
        })
    }
}

// === impl NodeId ===

impl NodeId {
    const MAX_BYTES: usize = 256;

    /// Returns the id.
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
