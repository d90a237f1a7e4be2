//! Rules from a server.

mod cache;

use std::{fmt, path::PathBuf, time::Duration};

use headgate_ratelimit::{RuleId, RuleSpec};
use headgate_rules_file::draft;
use reqwest::{Client, Url};
use serde_json::{Map, Value as Json};
use tracing::{info, warn};

use self::cache::Cache;
use crate::{RuleSet, RulesError};

/// The rules of a Headgate server, which are fetched over REST when they change.
///
/// The server's ids are kept: on the server's Redis, the service and the server count together. While the server does not answer, the rules that were fetched last stay in force.
pub struct ServerRules {
    client: Client,
    url: Url,
    token: Option<String>,
    rules: RuleSet,
    /// Revision of the rules in force; `None` if they are not the server's, or cached.
    revision: Option<i64>,
    cache: Option<Cache>,
    /// The reason that the rules were not fetched, to log it once.
    failed: Option<String>,
}

/// Path of the rules, and the size of a page.
const PATH: &str = "api/v1/ratelimit/rules";
const PAGE_SIZE: usize = 100;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of times that the pages are read because the rules changed in between.
const MAX_ATTEMPTS: usize = 5;

/// A page of rules.
struct Page {
    rules: Vec<Map<String, Json>>,
    revision: i64,
    has_next: bool,
}

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
        let base = format!("{}/{PATH}", url.trim_end_matches('/'));
        let url =
            Url::parse(&base).map_err(|error| RulesError::Server(format!("{url}: {error}")))?;
        let (rules, revision, cache, failed) = (rules.clone(), None, None, None);
        Ok(Self { client, url, token, rules, revision, cache, failed })
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
                self.rules.replace_rules(cached)?;
                warn!(%error, rules = self.rules.len(), "cannot fetch rules; using cached ones");
                Ok(true)
            }
            fetched => fetched,
        }
    }

    async fn fetch(&mut self) -> Result<bool, RulesError> {
        let newest = self.page(1, 1).await?.revision;
        if self.revision == Some(newest) {
            return Ok(false);
        }
        for _ in 0..MAX_ATTEMPTS {
            if let Some((revision, rules)) = self.pages().await? {
                self.rules.replace_rules(rules.iter().map(rule).collect::<Result<_, _>>()?)?;
                self.revision = Some(revision);
                if let Some(cache) = self.cache.clone() {
                    // Writing would delay requests. It fails only while the runtime shuts down.
                    let _ = tokio::task::spawn_blocking(move || cache.write(&rules)).await;
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

    /// Reads all pages; `None` if the rules changed between two of them.
    async fn pages(&self) -> Result<Option<(i64, Vec<Map<String, Json>>)>, RulesError> {
        let mut all = Vec::new();
        let mut revision = None;
        for number in 1.. {
            let page = self.page(number, PAGE_SIZE).await?;
            if *revision.get_or_insert(page.revision) != page.revision {
                return Ok(None);
            }
            let more = page.has_next && !page.rules.is_empty();
            all.extend(page.rules);
            if all.len() > RuleSet::MAX_RULES {
                return Err(RulesError::TooMany(all.len()));
            }
            if !more {
                break;
            }
        }
        Ok(revision.map(|revision| (revision, all)))
    }

    async fn page(&self, number: usize, size: usize) -> Result<Page, RulesError> {
        let failed = |error: reqwest::Error| RulesError::Server(error.without_url().to_string());
        let mut url = self.url.clone();
        url.set_query(Some(&format!("page={number}&page_size={size}")));
        let mut request = self.client.get(url).timeout(TIMEOUT);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let mut response = request.send().await.map_err(failed)?;
        if !response.status().is_success() {
            return Err(RulesError::Server(format!("the server answered {}", response.status())));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_PAGE_BYTES {
                return Err(RulesError::Server("the answer is too large".to_owned()));
            }
        }
        Page::parse(&body).ok_or_else(|| {
            RulesError::Server("the answer is not a page of rules: check the URL".to_owned())
        })
    }
}

impl fmt::Debug for ServerRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerRules")
            .field("url", &self.url.as_str())
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

// === impl Page ===

impl Page {
    fn parse(body: &[u8]) -> Option<Self> {
        let Json::Object(mut page) = serde_json::from_slice(body).ok()? else { return None };
        let Some(Json::Array(rules)) = page.remove("rules") else { return None };
        let object = |rule| match rule {
            Json::Object(rule) => Some(rule),
            _ => None,
        };
        Some(Self {
            rules: rules.into_iter().map(object).collect::<Option<_>>()?,
            revision: page.get("revision")?.as_i64()?,
            has_next: page.get("pagination")?.get("has_next")?.as_bool()?,
        })
    }
}

/// Returns the id and the fields of a rule of a server.
fn rule(fields: &Map<String, Json>) -> Result<(RuleId, RuleSpec), RulesError> {
    let id = fields.get("id").and_then(Json::as_str).and_then(|id| id.parse().ok());
    let id: RuleId = id.ok_or_else(|| RulesError::Server("a rule has no id".to_owned()))?;
    let spec = draft(fields).validate(None).map_err(|errors| {
        let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
        // A newer server may have rules that this version does not know.
        RulesError::Server(format!("rule {id} is unknown to this version: {}", messages.join("; ")))
    })?;
    Ok((id, spec))
}
