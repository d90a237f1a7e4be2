//! `GET /console/overview`: the data of the console's first page.

use std::{sync::Arc, time::Duration};

use axum::{extract::State, response::Response};
use headgate_api::{Masked, Operations, rate_limits::DeniedSubject};
use headgate_auth::Action;
use headgate_console::{Console, pulse::Beat};
use serde::Serialize;

use crate::{
    reload::Reloader,
    rest::{caller::Caller, error::ApiError, json, query::Query, time},
};

/// Number of denied subjects shown.
const MOST: usize = 10;

/// State of the server.
#[derive(Serialize)]
struct WireOverview<'a> {
    now: String,
    /// Samples after the requested position, oldest first.
    beats: Vec<WireBeat>,
    server: WireServer<'a>,
    store: WireHealth,
    database: WireHealth,
    rules: WireSnapshot,
    quotas: WireSnapshot,
    /// Subjects denied in the last minutes.
    limited: Vec<WireDenied>,
    /// True if identifiers are masked for this role.
    masked: bool,
}

/// Decisions in one second.
#[derive(Serialize)]
struct WireBeat {
    seq: u64,
    /// End of the second, in Unix milliseconds.
    at: u64,
    /// Decisions per second.
    admitted: f64,
    denied: f64,
    degraded: f64,
    /// Microseconds.
    p50: Option<f64>,
    p99: Option<f64>,
}

#[derive(Serialize)]
struct WireServer<'a> {
    name: &'a str,
    version: &'static str,
    environment: &'a str,
    started_at: String,
    config_version: String,
    store: &'static str,
}

#[derive(Serialize)]
struct WireHealth {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The rules or policies in force.
#[derive(Serialize)]
struct WireSnapshot {
    revision: i64,
    count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmed_at: Option<String>,
}

#[derive(Serialize)]
struct WireDenied {
    scope: &'static str,
    identifier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_id: Option<String>,
    rule_name: String,
    denied: u64,
    last_at: String,
}

pub(super) async fn overview(
    State(console): State<Arc<Console>>,
    State(operations): State<Arc<Operations>>,
    State(reloader): State<Arc<Reloader>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    let actor = caller.actor(Action::Watch).await?;
    let mut reader = query.reader(&[&["after"]]);
    let after = reader.parsed("after", || "after must be the seq of a beat".to_owned());
    reader.finish()?;
    let masked = !actor.may(Action::SeeSubjects);
    let version = reloader.status().version.clone();
    let after = after.unwrap_or(0);
    Ok(json::respond(&WireOverview::of(&console, &operations, version, after, masked)))
}

// === impl WireOverview ===

impl<'a> WireOverview<'a> {
    fn of(
        console: &'a Console,
        operations: &'a Operations,
        config_version: String,
        after: u64,
        masked: bool,
    ) -> Self {
        let (now, policies) = (console.now(), &operations.quotas.catalog);
        let snapshot = operations.rules.load();
        let limited = console.top_denied.top(MOST, now);
        Self {
            now: time::text(now),
            beats: console.pulse.after(after).iter().map(WireBeat::from).collect(),
            server: WireServer {
                name: &operations.app.name,
                version: env!("CARGO_PKG_VERSION"),
                environment: &operations.app.environment,
                started_at: time::text(console.started_at),
                config_version,
                store: operations.store.name(),
            },
            store: console.pulse.store_error().into(),
            database: operations.read_error().into(),
            rules: WireSnapshot {
                revision: snapshot.revision().0,
                count: snapshot.len(),
                confirmed_at: operations.rules.freshness().confirmed_at.map(time::text),
            },
            quotas: WireSnapshot {
                revision: policies.revision().0,
                count: policies.len(),
                confirmed_at: policies.freshness().confirmed_at.map(time::text),
            },
            limited: limited.into_iter().map(|denied| WireDenied::of(denied, masked)).collect(),
            masked,
        }
    }
}

impl From<Option<String>> for WireHealth {
    fn from(error: Option<String>) -> Self {
        Self { ok: error.is_none(), error }
    }
}

impl From<&Beat> for WireBeat {
    fn from(beat: &Beat) -> Self {
        let second = Duration::from_micros(beat.micros).as_secs_f64();
        let rate = |count: u64| (count as f64 / second * 10.0).round() / 10.0;
        let rounded = |micros: f64| (micros * 10.0).round() / 10.0;
        Self {
            seq: beat.seq,
            at: beat.at.as_micros() / 1000,
            admitted: rate(beat.totals.allowed),
            denied: rate(beat.totals.denied),
            degraded: rate(beat.totals.degraded),
            p50: beat.totals.quantile(0.5).map(rounded),
            p99: beat.totals.quantile(0.99).map(rounded),
        }
    }
}

// === impl WireDenied ===

impl WireDenied {
    fn of(denied: DeniedSubject, masked: bool) -> Self {
        let DeniedSubject { scope, identifier, rule_id, rule_name, denied, last_at, .. } = denied;
        let identifier = if masked { Masked(&identifier).to_string() } else { identifier };
        Self { scope, identifier, rule_id, rule_name, denied, last_at: time::text(last_at) }
    }
}
