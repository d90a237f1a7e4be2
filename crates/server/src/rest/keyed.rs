//! `/api/v1/rate-limit`: limits by the name of an algorithm, for any key. No rule has to be written
//! first.
//!
//! This API has its own format: bodies in camel case, 429 for a denial, and errors as `{error,
//! message, requestedAlgorithm, supportedAlgorithms}`.

mod answer;
pub(super) mod check;
pub(super) mod described;
mod parameters;
pub(super) mod remaining;
pub(super) mod reset;

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use headgate_api::rate_limits::MeteredKeys;
use headgate_config::Problem;
use headgate_ratelimit::{KeyedAlgorithm, KeyedLimits};

use super::client::Clients;
use crate::config::Config;

pub(super) use self::answer::{WireDecision, WireRemaining};

/// The use case and settings of the handlers below.
pub(crate) struct KeyedApi {
    pub(crate) keys: MeteredKeys,
    settings: ArcSwap<KeyedSettings>,
}

/// What the configuration says about keys. Immutable: a reload replaces it as a whole.
pub(crate) struct KeyedSettings {
    pub(super) limits: Arc<KeyedLimits>,
    /// The algorithm of requests that name none.
    pub(super) default_algorithm: KeyedAlgorithm,
    clients: Clients,
}

// === impl KeyedApi ===

impl KeyedApi {
    pub(crate) fn new(keys: MeteredKeys, config: &Config) -> Result<Self, Problem> {
        Ok(Self { keys, settings: ArcSwap::from_pointee(KeyedSettings::new(config)?) })
    }

    /// Returns the settings in force. A request loads them once.
    pub(super) fn settings(&self) -> Guard<Arc<KeyedSettings>> {
        self.settings.load()
    }

    /// Replaces the settings.
    pub(crate) fn replace(&self, settings: KeyedSettings) {
        self.settings.store(Arc::new(settings));
    }
}

// === impl KeyedSettings ===

impl KeyedSettings {
    pub(crate) fn new(config: &Config) -> Result<Self, Problem> {
        let server = &config.server;
        Ok(Self {
            limits: Arc::new(config.rate_limiter.limits(config.ratelimit.lease())?),
            default_algorithm: config.rate_limiter.algorithm.get(),
            clients: Clients { proxies: server.proxies(), ipv6: server.ipv6_prefix() },
        })
    }
}
