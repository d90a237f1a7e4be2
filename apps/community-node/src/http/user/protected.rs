//! What needs a token. What a request says is looked at first, then its quota; only then something
//! is done.

mod charge;
mod report;

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use axum::{Extension, Json, extract::State};
use nostr::key::PublicKey;
use serde::Deserialize;
use serde_json::{Value, json};

use self::charge::Charge;
pub(super) use self::report::report;
use super::{
    super::{
        Http,
        body::{Params, PathPart},
        error::ApiError,
    },
    caller::Caller,
    library::Note,
};
use crate::quota::Metric;

#[derive(Deserialize)]
pub(super) struct Search {
    q: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct Page {
    limit: Option<usize>,
}

/// How many of the newest notes are looked at.
const SCANNED: usize = 10_000;

/// How many results there are at most, and unless said.
const MAX_RESULTS: usize = 100;
const RESULTS: usize = 20;

/// `GET /v1/search?q=...`
pub(super) async fn search(
    State(http): State<Arc<Http>>,
    Extension(caller): Extension<Caller>,
    Params(search): Params<Search>,
    charge: Charge,
) -> Result<Json<Value>, ApiError> {
    let wanted = search.q.as_deref().unwrap_or_default().trim().to_lowercase();
    if !(1..=200).contains(&wanted.chars().count()) {
        return Err(ApiError::invalid("INVALID_QUERY", "q must have 1 to 200 characters"));
    }
    let limit = results(search.limit)?;
    charge.take(&http, Metric::Search, &caller, b"").await?;

    let mut items = Vec::new();
    read(&http, |note| {
        if note.content.to_lowercase().contains(&wanted) {
            items.push(shown(note));
        }
        items.len() < limit
    });
    Ok(Json(json!({"items": items})))
}

/// `GET /v1/trending`: what the newest notes are about.
pub(super) async fn trending(
    State(http): State<Arc<Http>>,
    Extension(caller): Extension<Caller>,
    Params(page): Params<Page>,
    charge: Charge,
) -> Result<Json<Value>, ApiError> {
    let limit = results(page.limit)?;
    charge.take(&http, Metric::Trending, &caller, b"").await?;

    let mut counts: HashMap<String, u64> = HashMap::new();
    read(&http, |note| {
        for topic in note.topics {
            *counts.entry((*topic).to_owned()).or_default() += 1;
        }
        true
    });
    let mut topics = Vec::from_iter(counts);
    topics.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    let items = topics.iter().take(limit);
    let items: Vec<_> = items.map(|(topic, n)| json!({"topic": topic, "notes": n})).collect();
    Ok(Json(json!({"items": items})))
}

/// `GET /v1/trust/{pubkey}`: what is known of somebody.
pub(super) async fn trust(
    State(http): State<Arc<Http>>,
    Extension(caller): Extension<Caller>,
    PathPart(pubkey): PathPart,
    charge: Charge,
) -> Result<Json<Value>, ApiError> {
    let pubkey = PublicKey::from_hex(&pubkey).map_err(|_| ApiError::INVALID_PUBKEY)?.to_hex();
    charge.take(&http, Metric::Trust, &caller, b"").await?;

    let mut notes = 0_u64;
    read(&http, |note| {
        notes += u64::from(note.pubkey == pubkey);
        true
    });
    let reports = report::about(&http, &pubkey).await?;
    Ok(Json(json!({"pubkey": pubkey, "notes": notes, "reports": reports})))
}

fn results(limit: Option<usize>) -> Result<usize, ApiError> {
    let limit = limit.unwrap_or(RESULTS);
    if (1..=MAX_RESULTS).contains(&limit) {
        return Ok(limit);
    }
    Err(ApiError::invalid("INVALID_QUERY", format!("limit must be 1 to {MAX_RESULTS}")))
}

/// Shows the newest notes to `reader` while it wants more.
fn read(http: &Http, mut reader: impl FnMut(&Note<'_>) -> bool) {
    let mut left = SCANNED;
    http.library.read(&mut |note| {
        left -= 1;
        if reader(note) && left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
}

fn shown(note: &Note<'_>) -> Value {
    json!({
        "id": note.id,
        "pubkey": note.pubkey,
        "created_at": note.created_at,
        "content": note.content,
        "topics": note.topics,
    })
}
