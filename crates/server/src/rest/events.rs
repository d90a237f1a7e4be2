//! `GET /api/v1/events`: the log of quota events, and [`stream`], the live stream.

mod delivery;
mod described;
pub(super) mod stream;

use axum::{extract::State, response::Response};
use headgate_auth::Action;
use headgate_events::Events;
use headgate_quota::{EventKind, LoggedEvent, QuotaEvent, QuotaId, RepositoryError};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    caller::Caller,
    error::ApiError,
    json,
    query::{Query, Reader},
    schemas::{Failing, Invalid, Protected},
};

use self::delivery::WireEvent;

pub(super) use self::described::EventDescription;

pub(super) const PATH: &str = "/api/v1/events";

/// Some events, oldest first by default.
#[derive(Serialize, ToSchema)]
#[schema(as = Events)]
pub(super) struct WireEvents {
    events: Vec<WireEvent>,
    /// Cursor of the next page. Nothing is new while it equals `after`.
    next: String,
}

/// Selects events, from a position on.
#[derive(Debug, Default)]
struct EventFilter {
    after: Option<i64>,
    /// Lists backwards from this position.
    before: Option<i64>,
    quota_id: Option<QuotaId>,
    kind: Option<EventKind>,
}

/// Parameters that select events, for lists and streams.
const FILTER: [&str; 3] = ["after", "quota_id", "event_type"];

const MAX_LIMIT: u32 = 100;
const DEFAULT_LIMIT: u32 = 50;

/// Most events scanned for one response, if few match.
const MAX_PAGES: usize = 10;

/// Lists events, oldest first by default.
#[utoipa::path(
    get,
    path = PATH,
    tag = "events",
    operation_id = "list_events",
    params(
        ("after" = Option<i64>, Query, minimum = 0, description = "Only events after this cursor: `next` of an earlier response. Default: from the oldest event"),
        ("order" = Option<String>, Query, description = "`oldest` (default) or `newest` first"),
        ("before" = Option<i64>, Query, minimum = 0, description = "With `order=newest`: only events before this cursor, `next` of an earlier response"),
        ("deliveries" = Option<bool>, Query, description = "Adds the deliveries of each event"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Maximum number of events; default 50"),
        ("quota_id" = Option<String>, Query, description = "Only events of this policy"),
        ("event_type" = Option<String>, Query, description = "Only `QUOTA_EXCEEDED` or `QUOTA_THRESHOLD_REACHED`"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "Events; with a filter there may be fewer than `limit` although more follow", body = WireEvents), Invalid, Protected, Failing),
)]
pub(super) async fn list(
    State(events): State<Events>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadEvents).await?;
    let mut reader = query.reader(&[&FILTER, &["order", "before", "deliveries", "limit"]]);
    let wanted = EventFilter::read(&mut reader);
    let invalid_limit = || format!("limit must be a whole number from 1 to {MAX_LIMIT}");
    let limit: Option<u32> = reader.parsed("limit", invalid_limit);
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        reader.refuse("limit", invalid_limit());
    }
    let with_deliveries = reader
        .parsed("deliveries", || "deliveries must be true or false".to_owned())
        .unwrap_or(false);
    reader.finish()?;

    let (found, next) = wanted.find(&events, limit).await.map_err(|error| away(&error))?;
    let events = if with_deliveries {
        let listed = delivery::with_deliveries(&events, found).await;
        listed.map_err(|error| away(&error))?
    } else {
        delivery::alone(found)
    };
    Ok(json::respond(&WireEvents { events, next: next.to_string() }))
}

// === impl EventFilter ===

impl EventFilter {
    fn read(reader: &mut Reader<'_>) -> Self {
        let after = reader.parsed("after", || no_cursor("after"));
        if after.is_some_and(|after: i64| after < 0) {
            reader.refuse("after", no_cursor("after"));
        }
        let before = reader.parsed("before", || no_cursor("before"));
        if before.is_some_and(|before: i64| before < 0) {
            reader.refuse("before", no_cursor("before"));
        }
        let newest = match reader.text("order") {
            None | Some("oldest") => false,
            Some("newest") => true,
            Some(_) => {
                reader.refuse("order", "order must be one of: oldest, newest".to_owned());
                false
            }
        };
        if newest && after.is_some() {
            let message = "after cannot be used with order=newest; use before".to_owned();
            reader.refuse("after", message);
        }
        if !newest && before.is_some() {
            reader.refuse("before", "before can only be used with order=newest".to_owned());
        }
        Self {
            after,
            before: newest.then_some(before.unwrap_or(i64::MAX)),
            quota_id: reader.parsed("quota_id", || "quota_id must be a policy's id".to_owned()),
            kind: reader.parsed("event_type", || {
                let names = EventKind::ALL.map(EventKind::name).join(", ");
                format!("event_type must be one of: {names}")
            }),
        }
    }

    fn fits(&self, event: &QuotaEvent) -> bool {
        self.kind.is_none_or(|kind| kind == event.kind)
            && self.quota_id.as_ref().is_none_or(|id| *id == event.quota_id)
    }

    const fn is_all(&self) -> bool {
        self.kind.is_none() && self.quota_id.is_none()
    }

    /// Returns at most `limit` events, and the position of the last event scanned.
    async fn find(
        &self,
        events: &Events,
        limit: u32,
    ) -> Result<(Vec<LoggedEvent>, i64), RepositoryError> {
        let mut place = self.before.or(self.after).unwrap_or_default();
        let at_a_time = if self.is_all() { limit } else { MAX_LIMIT };
        let mut found = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = match self.before {
                Some(_) => events.log().before(place, at_a_time).await?,
                None => events.log().after(place, at_a_time).await?,
            };
            let is_last = page.len() < at_a_time as usize;
            for logged in page {
                place = logged.seq;
                if self.fits(&logged.event) {
                    found.push(logged);
                }
                if found.len() == limit as usize {
                    return Ok((found, place));
                }
            }
            if is_last {
                break;
            }
        }
        Ok((found, place))
    }
}

fn no_cursor(name: &str) -> String {
    format!("{name} must be the `next` of an earlier answer, or the id of an event in the stream")
}

fn away(error: &RepositoryError) -> ApiError {
    match error {
        RepositoryError::Corrupt(_) => ApiError::Internal(error.to_string()),
        _ => ApiError::NoDatabase(error.to_string()),
    }
}
