use std::{collections::HashSet, fmt, net::IpAddr, path::PathBuf, time::Duration};

use headgate_config::{Bounded, Print, Printed, Problem, Secret, print_sections};
use headgate_quota::EventKind;
use headgate_tls_client::TlsFiles;
use reqwest::Url;
use serde::Deserialize;

/// A receiver of events over HTTP: an item of `webhooks`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct WebhookConfig {
    /// URL: `https`, or `http` on this machine.
    pub url: WebhookUrl,
    /// Key of the signatures; `secret_file` names a file that holds it.
    pub secret: Secret,
    /// Subscribed events; empty for all.
    #[serde(default)]
    pub events: Vec<EventName>,
    /// Timeout of one event.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: Bounded<1, 60>,
    /// Allows unencrypted requests to another machine.
    #[serde(default)]
    pub allow_insecure: bool,
    /// Authorities of the receiver's certificate, in PEM; default: the system's.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// Client certificate, in PEM.
    #[serde(default)]
    pub cert_file: Option<PathBuf>,
    /// Private key of the client certificate, in PEM.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
}

/// URL of a receiver.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct WebhookUrl(Url);

/// A kind of event.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct EventName(EventKind);

/// Maximum number of webhooks: each holds a connection to the database.
const MAX_WEBHOOKS: usize = 8;

/// Minimum length of a secret: shorter ones could be guessed.
const MIN_SECRET_BYTES: usize = 16;

const fn default_timeout() -> Bounded<1, 60> {
    Bounded::of::<10>()
}

/// Validates the webhooks together, and returns the problems.
pub fn webhook_contradictions(webhooks: &[WebhookConfig]) -> Vec<Problem> {
    let mut seen = HashSet::new();
    let each = webhooks.iter().enumerate().filter_map(|(index, webhook)| {
        let (key, message) = webhook.problem(&mut seen)?;
        Some(Problem::new(format!("webhooks[{index}].{key}"), message))
    });
    let mut problems: Vec<Problem> = each.collect();
    let each = webhooks.iter().enumerate().flat_map(|(index, webhook)| {
        let section = format!("webhooks[{index}]");
        let without_tls = webhook.url.0.scheme() == "http";
        let remedy = without_tls.then_some("set url to an https:// URL");
        let problems = webhook.tls_files().contradictions(&section, remedy).into_iter();
        problems.map(move |(key, message)| Problem::new(format!("{section}.{key}"), message))
    });
    problems.extend(each);
    if webhooks.len() > MAX_WEBHOOKS {
        problems.push(Problem::new("webhooks", format!("expected at most {MAX_WEBHOOKS}")));
    }
    problems
}

// === impl WebhookConfig ===

impl WebhookConfig {
    pub(crate) const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.get())
    }

    pub(crate) fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
        }
    }

    /// Returns true if it is subscribed to events of this kind.
    pub(crate) fn wants(&self, kind: EventKind) -> bool {
        self.events.is_empty() || self.events.contains(&EventName(kind))
    }

    fn problem<'a>(&'a self, seen: &mut HashSet<&'a str>) -> Option<(&'static str, String)> {
        let clear = self.url.0.scheme() == "http" && !self.url.is_loopback();
        if clear && !self.allow_insecure {
            let message = "http goes to this machine alone: use https, or write \
                           allow_insecure: true to send events in the clear";
            return Some(("url", message.to_owned()));
        }
        if !seen.insert(self.url.0.as_str()) {
            return Some(("url", "another webhook has the same url".to_owned()));
        }
        if self.secret.expose().len() < MIN_SECRET_BYTES {
            return Some(("secret", format!("expected at least {MIN_SECRET_BYTES} bytes")));
        }
        None
    }
}

// === impl WebhookUrl ===

impl WebhookUrl {
    pub(crate) const fn get(&self) -> &Url {
        &self.0
    }

    /// Returns true if the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    /// Returns the host and port.
    pub fn address(&self) -> (String, u16) {
        let host = self.0.host_str().unwrap_or_default().trim_matches(['[', ']']);
        (host.to_owned(), self.0.port_or_known_default().unwrap_or_default())
    }

    /// Returns the URL without path and query, which may hold a secret.
    pub fn shown(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

impl TryFrom<String> for WebhookUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
        };
        Url::parse(&text).ok().filter(fits).map(Self).ok_or_else(|| {
            "expected an https:// URL without user or password, such as \
             https://alerts.example/hooks/quota"
                .to_owned()
        })
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

// === impl EventName ===

impl EventName {
    const fn name(self) -> &'static str {
        self.0.name()
    }
}

impl TryFrom<String> for EventName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
            .map(Self)
            .map_err(|error: headgate_quota::event::UnknownKind| error.to_string())
    }
}

// === impl Print ===

print_sections! {
    WebhookConfig {
        url, secret, events, timeout_seconds, allow_insecure, ca_file, cert_file, key_file,
    }
}

impl Print for WebhookUrl {
    fn print(&self) -> Printed {
        Printed::masked(self.shown(), self.0.as_str())
    }
}

impl Print for EventName {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}

#[cfg(test)]
mod tests;
