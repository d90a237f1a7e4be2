//! `GET /api/v1/events/stream`: new events as server-sent events.

use std::{convert::Infallible, fmt::Write as _, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use futures_util::{Stream, stream};
use headgate_api::Access;
use headgate_auth::Action;
use headgate_events::{Events, Shutdown, StreamPermit};
use headgate_quota::{LoggedEvent, RepositoryError};
use tokio::{
    sync::{mpsc, watch},
    time::{self, Instant},
};
use tracing::debug;

use super::{EventDescription, EventFilter, FILTER, no_cursor};
use crate::rest::{
    caller::Caller,
    error::ApiError,
    json,
    query::Query,
    schemas::{Crowded, Failing, Invalid, Protected},
};

pub(in crate::rest) const PATH: &str = "/api/v1/events/stream";

/// Sent by clients that reconnect.
const LAST_EVENT_ID: &str = "last-event-id";

/// Events written at a time.
const AT_A_TIME: u32 = 100;

/// Poll interval of the log without notifications.
const POLL: Duration = Duration::from_secs(1);

/// Interval of heartbeats, by which both ends detect a dead connection.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Timeout of a client that does not read: it is sent a heartbeat every few seconds.
const STALLED: Duration = Duration::from_secs(60);

/// Longest stream: clients that reconnect are authenticated again.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// Delay before a client reconnects, in milliseconds.
const GREETING: &str = "retry: 2000\n\n";

/// The position of one client in the log.
struct Following {
    events: Events,
    wanted: EventFilter,
    after: i64,
    news: watch::Receiver<()>,
    shutdown: Shutdown,
    caller: Caller,
    access_replaced: watch::Receiver<()>,
    beat_at: Instant,
    ends_at: Instant,
    greeted: bool,
    _permit: StreamPermit,
}

/// Reason that a wait ended.
enum Quiet {
    /// The stream ends.
    Ended,
    /// A heartbeat is due.
    Heartbeat,
    /// There may be new events.
    Look,
}

/// Streams events as they happen.
#[utoipa::path(
    get,
    path = "/api/v1/events/stream",
    tag = "events",
    operation_id = "follow_events",
    params(
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the last event received; the stream continues after it"),
        ("after" = Option<i64>, Query, minimum = 0, description = "The same, for clients that cannot send the header. Default: from the oldest event"),
        ("quota_id" = Option<String>, Query, description = "Only events of this policy"),
        ("event_type" = Option<String>, Query, description = "Only `QUOTA_EXCEEDED` or `QUOTA_THRESHOLD_REACHED`"),
    ),
    security(("token" = [])),
    responses(
        (status = 200, description = "Server-sent events: `id` is the position in the log, `event` the `event_type`, `data` the event; a comment every 15 seconds", body = EventDescription, content_type = "text/event-stream"),
        Invalid,
        Protected,
        Crowded,
        Failing,
    ),
)]
pub(in crate::rest) async fn follow(
    State(events): State<Events>,
    State(access): State<Arc<Access>>,
    caller: Caller,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    // Before the caller is authorized: a reload in between would not be noticed.
    let access_replaced = caller.access_replaced();
    let actor = caller.actor(Action::ReadEvents).await?;
    let mut reader = query.reader(&[&FILTER]);
    let mut wanted = EventFilter::read(&mut reader);
    if let Some(last) = headers.get(LAST_EVENT_ID) {
        let seq = last.to_str().ok().and_then(|text| text.parse().ok());
        match seq.filter(|seq: &i64| *seq >= 0) {
            Some(seq) => wanted.after = Some(seq),
            None => reader.refuse("Last-Event-ID", no_cursor("Last-Event-ID")),
        }
    }
    reader.finish()?;
    let who = (!access.auth().is_off()).then_some(&*actor.name);
    let permit = events.streams().acquire(who).map_err(ApiError::TooManyStreams)?;
    Ok(respond(Following::new(&events, wanted, (caller, access_replaced), permit).start()))
}

fn respond(texts: mpsc::Receiver<String>) -> Response {
    let mut response = Response::new(Body::from_stream(stream(texts)));
    for (name, value) in
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn stream(mut texts: mpsc::Receiver<String>) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::poll_fn(move |context| {
        texts.poll_recv(context).map(|text| text.map(|text| Ok(Bytes::from(text))))
    })
}

// === impl Following ===

impl Following {
    fn new(
        events: &Events,
        wanted: EventFilter,
        (caller, access_replaced): (Caller, watch::Receiver<()>),
        permit: StreamPermit,
    ) -> Self {
        let now = Instant::now();
        Self {
            events: events.clone(),
            after: wanted.after.unwrap_or_default(),
            wanted,
            news: events.new_events().subscribe(),
            shutdown: events.shutdown(),
            access_replaced,
            caller,
            beat_at: now + HEARTBEAT,
            ends_at: now + LONGEST,
            greeted: false,
            _permit: permit,
        }
    }

    /// Starts sending, in a task of its own: the body of a client that does not read is not polled.
    fn start(self) -> mpsc::Receiver<String> {
        let (sender, texts) = mpsc::channel(1);
        tokio::spawn(self.send(sender));
        texts
    }

    /// Reads the next events only after the client has taken the last ones, so that slow clients
    /// cost nothing.
    async fn send(mut self, texts: mpsc::Sender<String>) {
        loop {
            let text = tokio::select! {
                text = self.next() => text,
                () = texts.closed() => None,
            };
            let Some(text) = text else {
                return;
            };
            if texts.send_timeout(text, STALLED).await.is_err() {
                return;
            }
        }
    }

    /// Returns false if the caller has signed out, its token has expired, or a reload has taken its
    /// access.
    async fn is_permitted(&mut self) -> bool {
        self.access_replaced.mark_unchanged();
        self.caller.still_may(Action::ReadEvents).await
    }

    /// Returns false if a reload has taken the caller's access.
    async fn outlives_reloads(&mut self) -> bool {
        // The sender lives as long as the server.
        !self.access_replaced.has_changed().unwrap_or_default() || self.is_permitted().await
    }

    /// The next text; `None` when the stream ends.
    async fn next(&mut self) -> Option<String> {
        if !self.greeted {
            self.greeted = true;
            return Some(GREETING.to_owned());
        }
        while Instant::now() < self.ends_at && self.outlives_reloads().await {
            // Keep the client connected while the database is down.
            let page = self.page().await.unwrap_or_else(|error| {
                debug!(%error, "failed to read events");
                None
            });
            if let Some(text) = page {
                return self.permitted(text).await;
            }
            match self.quiet().await {
                Quiet::Ended => return None,
                Quiet::Heartbeat => return self.permitted(": still here\n\n".to_owned()).await,
                Quiet::Look => {}
            }
        }
        None
    }

    /// Returns the text if the caller may still read it, and delays the next heartbeat.
    async fn permitted(&mut self, text: String) -> Option<String> {
        self.beat_at = Instant::now() + HEARTBEAT;
        self.is_permitted().await.then_some(text)
    }

    /// Returns the next selected events, if any.
    async fn page(&mut self) -> Result<Option<String>, RepositoryError> {
        loop {
            if self.shutdown.is_signalled() {
                return Ok(None);
            }
            let page = self.events.log().after(self.after, AT_A_TIME).await?;
            let Some(last) = page.last() else {
                return Ok(None);
            };
            self.after = last.seq;
            let wanted = page.iter().filter(|logged| self.wanted.fits(&logged.event));
            let text: String = wanted.map(written).collect();
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }

    async fn quiet(&mut self) -> Quiet {
        if self.shutdown.is_signalled() {
            return Quiet::Ended;
        }
        // A clone: `outlives_reloads` has yet to see the change.
        let mut access_replaced = self.access_replaced.clone();
        tokio::select! {
            () = self.shutdown.signalled() => Quiet::Ended,
            () = time::sleep_until(self.ends_at) => Quiet::Ended,
            () = time::sleep_until(self.beat_at) => Quiet::Heartbeat,
            // The sender lives as long as the server.
            _ = self.news.changed() => Quiet::Look,
            _ = access_replaced.changed() => Quiet::Look,
            () = time::sleep(POLL) => Quiet::Look,
        }
    }
}

fn written(logged: &LoggedEvent) -> String {
    let data = String::from_utf8(json::to_vec(&logged.event)).unwrap_or_default();
    let mut text = String::with_capacity(data.len() + 64);
    let kind = logged.event.kind.name();
    // Writing to a string cannot fail.
    let _ = write!(text, "id: {}\nevent: {kind}\ndata: {data}\n\n", logged.seq);
    text
}

#[cfg(test)]
mod tests;
