//! The console: what a browser needs beside the API.
//!
//! | module | what it owns |
//! |---|---|
//! | [`session`] | browsers that have signed in |
//! | [`pulse`] | decisions in each of the last seconds, and the state of store and database |
//! | [`preview`] | requests that a limit would admit, computed by the engine |
//!
//! Handlers are in `rest::console`, and the pages in `assets`.

pub(crate) mod preview;
pub(crate) mod pulse;
pub(crate) mod session;

use std::sync::Arc;

use headgate::{Clock, Timestamp};
use headgate_api::rate_limits::TopDenied;
use headgate_auth::oidc::{Oidc, RedirectOrigins};
use headgate_telemetry::AppConfig;
use ring::digest::{SHA256, digest};

use self::{pulse::Pulse, session::Sessions};
use crate::config::ConsoleConfig;

/// Path that the issuer redirects browsers to.
pub(crate) const OIDC_CALLBACK: &str = "/console/oidc/callback";

/// State of the console.
pub(crate) struct Console {
    pub(crate) sessions: Sessions,
    pub(crate) top_denied: Arc<TopDenied>,
    pub(crate) pulse: Pulse,
    /// Sign-in at the issuer, if it is configured.
    pub(crate) oidc: Option<Oidc>,
    /// The server's name and environment.
    pub(crate) app: AppConfig,
    /// Start time of the server.
    pub(crate) started_at: Timestamp,
    /// Fingerprint of the configuration.
    pub(crate) config_version: String,
    clock: Arc<dyn Clock>,
}

/// Settings of the console.
pub(crate) struct ConsoleSettings<'a> {
    pub(crate) console: &'a ConsoleConfig,
    /// Issuer of the tokens.
    pub(crate) issuer: Option<&'a str>,
    /// True if the server listens on loopback alone.
    pub(crate) on_loopback: bool,
    /// The server's name and environment.
    pub(crate) app: AppConfig,
    /// The configuration as it is printed, in which secrets are masked.
    pub(crate) printed_config: &'a str,
}

// === impl Console ===

impl Console {
    pub(crate) fn new(settings: ConsoleSettings<'_>, clock: &Arc<dyn Clock>) -> Self {
        let started_at = clock.now();
        Self {
            sessions: Sessions::new(settings.console, Arc::clone(clock)),
            top_denied: Arc::new(TopDenied::new(started_at)),
            pulse: Pulse::default(),
            oidc: settings.oidc(clock),
            config_version: fingerprint(settings.printed_config),
            app: settings.app,
            clock: Arc::clone(clock),
            started_at,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl ConsoleSettings<'_> {
    fn oidc(&self, clock: &Arc<dyn Clock>) -> Option<Oidc> {
        let console = self.console;
        let urls = console.public_url.iter().chain(&console.other_urls);
        let origins = RedirectOrigins::new(urls, self.on_loopback);
        Oidc::new(&console.oidc, self.issuer, origins, OIDC_CALLBACK, clock)
    }
}

/// Returns sixteen hexadecimal digits of a hash.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let (start, _) = digest.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
    format!("{:016x}", u64::from_be_bytes(*start))
}
