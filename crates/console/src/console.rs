//! The state of the console.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use headgate::{Clock, Timestamp};
use headgate_api::rate_limits::TopDenied;
use headgate_auth::{
    AuthConfig,
    oidc::{Oidc, RedirectOrigins},
};
use headgate_telemetry::AppConfig;

use crate::{config::ConsoleConfig, pulse::Pulse, session::Sessions};

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
    oidc: ArcSwapOption<Oidc>,
    /// The server's name and environment.
    pub app: AppConfig,
    /// Start time of the server.
    pub started_at: Timestamp,
    clock: Arc<dyn Clock>,
}

/// Settings of the console.
pub struct ConsoleSettings<'a> {
    /// The section `console`.
    pub console: &'a ConsoleConfig,
    /// The section `auth`, which has the issuer of the tokens.
    pub auth: &'a AuthConfig,
    /// Scheme of the server's URLs, if it listens on loopback alone.
    pub local_scheme: Option<&'static str>,
    /// The server's name and environment.
    pub app: AppConfig,
}

/// Changed settings of a running console.
pub struct PreparedSettings {
    session_ttl: Duration,
    idle_timeout: Duration,
    oidc: Option<Arc<Oidc>>,
}

// === impl Console ===

impl Console {
    /// Creates the state, without sessions.
    pub fn new(settings: ConsoleSettings<'_>, clock: &Arc<dyn Clock>) -> Self {
        let started_at = clock.now();
        Self {
            sessions: Sessions::new(settings.console, Arc::clone(clock)),
            top_denied: Arc::new(TopDenied::new(started_at)),
            pulse: Pulse::default(),
            oidc: ArcSwapOption::new(settings.oidc(clock)),
            app: settings.app,
            clock: Arc::clone(clock),
            started_at,
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the sign-in at the issuer, if it is configured.
    pub fn oidc(&self) -> Option<Arc<Oidc>> {
        self.oidc.load_full()
    }

    /// Prepares changed settings: reads the certificates of the issuer. Nothing changes until they
    /// are applied.
    pub fn prepare(&self, settings: &ConsoleSettings<'_>) -> PreparedSettings {
        PreparedSettings {
            session_ttl: settings.console.session_ttl(),
            idle_timeout: settings.console.idle_timeout(),
            oidc: settings.oidc(&self.clock),
        }
    }

    /// Applies changed settings.
    pub fn apply(&self, settings: PreparedSettings) {
        self.sessions.set_bounds(settings.session_ttl, settings.idle_timeout);
        self.oidc.store(settings.oidc);
    }
}

impl ConsoleSettings<'_> {
    fn oidc(&self, clock: &Arc<dyn Clock>) -> Option<Arc<Oidc>> {
        let console = self.console;
        let urls = console.public_url.iter().chain(&console.other_urls);
        let origins = RedirectOrigins::new(urls, self.local_scheme);
        Oidc::new(&console.oidc, self.auth, origins, OIDC_CALLBACK, clock).map(Arc::new)
    }
}
