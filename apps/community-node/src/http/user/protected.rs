//! Requests with a token. A request is validated first, then charged to its quota, then served.

mod charge;
mod report;

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use axum::{Extension, Json, extract::State};
use nostr::key::PublicKey;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task;

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
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    q: Option<String>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    limit: Option<usize>,
}

/// Maximum number of results, and the default.
const MAX_RESULTS: usize = 100;
const RESULTS: usize = 20;

/// Maximum size of the text that a search scans, the newest first.
const MAX_SEARCHED_BYTES: usize = 8 << 20;

/// Maximum number of topics that are counted for trends.
const MAX_COUNTED_TOPICS: usize = 100_000;

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

    let mut bytes = 0;
    let items = read(&http, Vec::new(), move |items, note| {
        let text = note.lowercase();
        if text.contains(&wanted) {
            items.push(note.shown());
        }
        bytes += text.len();
        items.len() < limit && bytes < MAX_SEARCHED_BYTES
    });
    let items = items.await?;
    Ok(Json(json!({"items": items})))
}

/// `GET /v1/trending`: topics of the newest notes.
pub(super) async fn trending(
    State(http): State<Arc<Http>>,
    Extension(caller): Extension<Caller>,
    Params(page): Params<Page>,
    charge: Charge,
) -> Result<Json<Value>, ApiError> {
    let limit = results(page.limit)?;
    charge.take(&http, Metric::Trending, &caller, b"").await?;

    let mut seen = 0;
    let counts = read(&http, HashMap::<String, u64>::new(), move |counts, note| {
        for topic in note.topics() {
            seen += 1;
            match counts.get_mut(topic) {
                Some(count) => *count += 1,
                None => drop(counts.insert(topic.to_owned(), 1)),
            }
        }
        seen < MAX_COUNTED_TOPICS
    });
    let mut topics = Vec::from_iter(counts.await?);
    topics.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    let items = topics.iter().take(limit);
    let items: Vec<_> = items.map(|(topic, n)| json!({"topic": topic, "notes": n})).collect();
    Ok(Json(json!({"items": items})))
}

/// `GET /v1/trust/{pubkey}`: number of notes of a public key, and of reports about it.
pub(super) async fn trust(
    State(http): State<Arc<Http>>,
    Extension(caller): Extension<Caller>,
    PathPart(pubkey): PathPart,
    charge: Charge,
) -> Result<Json<Value>, ApiError> {
    let wanted = PublicKey::from_hex(&pubkey).map_err(|_| ApiError::INVALID_PUBKEY)?;
    charge.take(&http, Metric::Trust, &caller, b"").await?;

    let notes = read(&http, 0_u64, move |notes, note| {
        *notes += u64::from(*note.author() == wanted);
        true
    });
    let notes = notes.await?;
    let pubkey = wanted.to_hex();
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

/// Folds the newest notes, except those of denied authors, into `gathered` while `reader` wants
/// more. Runs on a blocking thread.
async fn read<T: Send + 'static>(
    http: &Http,
    mut gathered: T,
    mut reader: impl FnMut(&mut T, Note<'_>) -> bool + Send + 'static,
) -> Result<T, ApiError> {
    let turn = Arc::clone(&http.readers).acquire_owned().await.map_err(|_| ApiError::INTERNAL)?;
    let (library, node) = (Arc::clone(&http.library), Arc::clone(&http.node));
    let reading = task::spawn_blocking(move || {
        // Held until the scan ends, even if the client hangs up.
        let _turn = turn;
        library.read(node.seconds(), &mut |note| {
            // Notes of a denied author stay stored, but are not shown.
            let more = node.denies_author(note.author()) || reader(&mut gathered, note);
            if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        gathered
    });
    reading.await.map_err(|_| ApiError::INTERNAL)
}
