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
use headgate_auth::oidc::{Oidc, RedirectOrigins};
use headgate_telemetry::AppConfig;
use ring::digest::{SHA256, digest};

use self::{pulse::Pulse, session::Sessions};
use crate::{config::Config, rate_limits::TopDenied};

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

impl Console {
    pub(crate) fn new(config: &Config, clock: &Arc<dyn Clock>) -> Self {
        let started_at = clock.now();
        Self {
            sessions: Sessions::new(&config.console, Arc::clone(clock)),
            top_denied: Arc::new(TopDenied::new(started_at)),
            pulse: Pulse::default(),
            oidc: oidc(config, clock),
            app: config.app.clone(),
            clock: Arc::clone(clock),
            started_at,
            config_version: version(config),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn oidc(config: &Config, clock: &Arc<dyn Clock>) -> Option<Oidc> {
    let console = &config.console;
    let urls = console.public_url.iter().chain(&console.other_urls);
    let origins = RedirectOrigins::new(urls, config.server.address().ip().is_loopback());
    Oidc::new(&console.oidc, config.auth.issuer.as_deref(), origins, OIDC_CALLBACK, clock)
}

/// Returns a fingerprint of the printed configuration, in which secrets are masked.
fn version(config: &Config) -> String {
    fingerprint(&config.printed().to_string())
}

/// Returns sixteen hexadecimal digits of a hash.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let (start, _) = digest.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
    format!("{:016x}", u64::from_be_bytes(*start))
}
