//! Rules from a server.

mod api;
mod cache;
mod fetched;

use std::{fmt, path::PathBuf, time::Duration};

use reqwest::Client;
use tracing::{info, warn};

use self::{
    api::Api,
    cache::Cache,
    fetched::{Fetched, objects},
};
use crate::{RuleSet, RulesError};

/// The rules and overrides of a Headgate server, which are fetched over REST when they change.
///
/// The server's ids are kept: on the server's Redis, the service and the server count together.
/// While the server does not answer, the rules that were fetched last stay in force.
pub struct ServerRules {
    api: Api,
    rules: RuleSet,
    /// Revision of the rules in force; `None` if they are not the server's, or cached.
    revision: Option<i64>,
    cache: Option<Cache>,
    /// The reason that the rules were not fetched, to log it once.
    failed: Option<String>,
}

/// Maximum number of times that everything is read because it changed meanwhile.
const MAX_ATTEMPTS: usize = 5;

// === impl ServerRules ===

impl ServerRules {
    /// Fetches the rules of the server at `url`, such as `https://headgate.internal`, for `rules`.
    /// `token` needs the role to read rules.
    ///
    /// # Errors
    ///
    /// The URL is invalid.
    pub fn new(
        client: Client,
        url: &str,
        token: Option<String>,
        rules: &RuleSet,
    ) -> Result<Self, RulesError> {
        let (api, rules) = (Api::new(client, url, token)?, rules.clone());
        Ok(Self { api, rules, revision: None, cache: None, failed: None })
    }

    /// Keeps the rules in a file too: a service that starts while the server does not answer has the
    /// rules that were fetched last.
    #[must_use]
    pub fn cached_in(self, path: impl Into<PathBuf>) -> Self {
        Self { cache: Some(Cache::new(path.into())), ..self }
    }

    /// Puts the rules of the server in force, if they have changed; returns `true` if they have.
    ///
    /// # Errors
    ///
    /// The server did not answer, or not with valid rules. The previous ones stay in force; without
    /// any, and with a [cache](Self::cached_in), those of the cache are, and this is no error.
    pub async fn refresh(&mut self) -> Result<bool, RulesError> {
        match self.fetch().await {
            Err(error) if self.revision.is_none() && self.rules.is_empty() => {
                let Some(cached) = self.cache.as_ref().and_then(Cache::read) else {
                    return Err(error);
                };
                cached.install(&self.rules)?;
                warn!(%error, rules = self.rules.len(), "cannot fetch rules; using cached ones");
                Ok(true)
            }
            fetched => fetched,
        }
    }

    async fn fetch(&mut self) -> Result<bool, RulesError> {
        if self.revision == Some(self.api.revision().await?) {
            return Ok(false);
        }
        for _ in 0..MAX_ATTEMPTS {
            if let Some((revision, fetched)) = self.api.read().await? {
                fetched.install(&self.rules)?;
                self.revision = Some(revision);
                if let Some(cache) = self.cache.clone() {
                    // Writing would delay requests. It fails only while the runtime shuts down.
                    let _ = tokio::task::spawn_blocking(move || cache.write(&fetched)).await;
                }
                return Ok(true);
            }
        }
        Err(RulesError::Server("they keep changing while they are read".to_owned()))
    }

    /// Refreshes the rules every `interval`, until the future is dropped. The log says why, if that
    /// fails.
    pub async fn follow(mut self, interval: Duration) {
        loop {
            match self.refresh().await {
                Ok(changed) => {
                    if changed || self.failed.is_some() {
                        info!(rules = self.rules.len(), "fetched rules");
                    }
                    self.failed = None;
                }
                Err(error) => {
                    let reason = error.to_string();
                    if self.failed.as_ref() != Some(&reason) {
                        warn!(error = reason, "cannot fetch rules; keeping the previous ones");
                    }
                    self.failed = Some(reason);
                }
            }
            tokio::time::sleep(interval).await;
        }
    }
}

impl fmt::Debug for ServerRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRules")
            .field("url", &self.api.url.as_str())
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
