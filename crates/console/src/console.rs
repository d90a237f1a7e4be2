//! The state of the console.

use std::sync::Arc;

use headgate::{Clock, Timestamp};
use headgate_api::rate_limits::TopDenied;
use headgate_auth::{
    AuthConfig,
    oidc::{Oidc, RedirectOrigins},
};
use headgate_telemetry::AppConfig;

use crate::{assets::fingerprint, config::ConsoleConfig, pulse::Pulse, session::Sessions};

/// Path that the issuer redirects browsers to.
pub const OIDC_CALLBACK: &str = "/console/oidc/callback";

/// State of the console.
pub struct Console {
    /// Browsers that have signed in.
    pub sessions: Sessions,
    /// The subjects denied most often.
    pub top_denied: Arc<TopDenied>,
    /// Decisions in the last seconds.
    pub pulse: Pulse,
    /// Sign-in at the issuer, if it is configured.
    pub oidc: Option<Oidc>,
    /// The server's name and environment.
    pub app: AppConfig,
    /// Start time of the server.
    pub started_at: Timestamp,
    /// Fingerprint of the configuration.
    pub config_version: String,
    clock: Arc<dyn Clock>,
}

/// Settings of the console.
pub struct ConsoleSettings<'a> {
    /// The section `console`.
    pub console: &'a ConsoleConfig,
    /// The section `auth`, which has the issuer of the tokens.
    pub auth: &'a AuthConfig,
    /// True if the server listens on loopback alone.
    pub on_loopback: bool,
    /// The server's name and environment.
    pub app: AppConfig,
    /// The configuration as it is printed, in which secrets are masked.
    pub printed_config: &'a str,
}

// === impl Console ===

impl Console {
    /// Creates the state; nobody is signed in.
    pub fn new(settings: ConsoleSettings<'_>, clock: &Arc<dyn Clock>) -> Self {
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

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl ConsoleSettings<'_> {
    fn oidc(&self, clock: &Arc<dyn Clock>) -> Option<Oidc> {
        let console = self.console;
        let urls = console.public_url.iter().chain(&console.other_urls);
        let origins = RedirectOrigins::new(urls, self.on_loopback);
        Oidc::new(&console.oidc, self.auth, origins, OIDC_CALLBACK, clock)
    }
}
