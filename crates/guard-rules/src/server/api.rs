//! Requests to the REST API of a server.

use std::time::Duration;

use headgate_ratelimit::RuleOverride;
use reqwest::{Client, Url};
use serde_json::{Map, Value as Json};

use super::Fetched;
use crate::{RuleSet, RulesError};

/// Reads rules and overrides, page by page.
pub(super) struct Api {
    client: Client,
    /// The folder of both lists.
    pub(super) url: Url,
    token: Option<String>,
}

/// Path of the lists, and the size of a page.
const PATH: &str = "api/v1/ratelimit/";
const PAGE_SIZE: usize = 100;

/// Timeout of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of a page.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// A list: the last part of its path, which is also the field with its items, with its parameters.
struct List {
    name: &'static str,
    parameters: &'static str,
    max: u64,
}

const RULES: List = List { name: "rules", parameters: "", max: RuleSet::MAX_RULES as u64 };

const OVERRIDES: List =
    List { name: "overrides", parameters: "&active_only=true", max: RuleOverride::MAX };

/// A page of a list.
struct Page {
    items: Vec<Map<String, Json>>,
    /// Revision of the rules; overrides have none of their own.
    revision: Option<i64>,
    has_next: bool,
}

// === impl Api ===

impl Api {
    pub(super) fn new(
        client: Client,
        url: &str,
        token: Option<String>,
    ) -> Result<Self, RulesError> {
        let base = format!("{}/{PATH}", url.trim_end_matches('/'));
        let url =
            Url::parse(&base).map_err(|error| RulesError::Server(format!("{url}: {error}")))?;
        Ok(Self { client, url, token })
    }

    /// Returns the newest revision. A change of an override makes one, too.
    pub(super) async fn revision(&self) -> Result<i64, RulesError> {
        self.page(&RULES, 1, 1).await?.revision.ok_or_else(not_a_page)
    }

    /// Reads everything; `None` if it changed meanwhile.
    pub(super) async fn read(&self) -> Result<Option<(i64, Fetched)>, RulesError> {
        let Some((revision, rules)) = self.all(&RULES).await? else { return Ok(None) };
        let Some((_, overrides)) = self.all(&OVERRIDES).await? else { return Ok(None) };
        let revision = revision.ok_or_else(not_a_page)?;
        let same = self.revision().await? == revision;
        Ok(same.then_some((revision, Fetched { rules, overrides })))
    }

    /// Reads all pages of a list; `None` if the revision changed between two of them.
    async fn all(
        &self,
        list: &List,
    ) -> Result<Option<(Option<i64>, Vec<Map<String, Json>>)>, RulesError> {
        let mut all = Vec::new();
        let mut revision = None;
        for number in 1.. {
            let page = self.page(list, number, PAGE_SIZE).await?;
            if *revision.get_or_insert(page.revision) != page.revision {
                return Ok(None);
            }
            let more = page.has_next && !page.items.is_empty();
            all.extend(page.items);
            if all.len() as u64 > list.max {
                return Err(RulesError::TooMany(list.name, list.max));
            }
            if !more {
                break;
            }
        }
        Ok(revision.map(|revision| (revision, all)))
    }

    async fn page(&self, list: &List, number: usize, size: usize) -> Result<Page, RulesError> {
        let failed = |error: reqwest::Error| RulesError::Server(error.without_url().to_string());
        let mut url =
            self.url.join(list.name).map_err(|error| RulesError::Server(error.to_string()))?;
        url.set_query(Some(&format!("page={number}&page_size={size}{}", list.parameters)));
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
        Page::parse(&body, list).ok_or_else(not_a_page)
    }
}

fn not_a_page() -> RulesError {
    RulesError::Server("the answer is not a page of rules: check the URL".to_owned())
}

// === impl Page ===

impl Page {
    fn parse(body: &[u8], list: &List) -> Option<Self> {
        let Json::Object(mut page) = serde_json::from_slice(body).ok()? else { return None };
        Some(Self {
            items: super::objects(page.remove(list.name)?)?,
            revision: page.get("revision").and_then(Json::as_i64),
            has_next: page.get("pagination")?.get("has_next")?.as_bool()?,
        })
    }
}
