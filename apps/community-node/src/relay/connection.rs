//! One client's connection.

mod auth;
mod deliver;
mod fragmented;
mod publish;
mod subscribe;

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use headgate_guard::{Denied, MessageKind, WebSocketConnection};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::{
    sync::{broadcast, watch},
    time::{self, Instant, MissedTickBehavior, timeout},
};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::{
    Inner, Relay,
    auth_deadline::AuthDeadline,
    challenge::Challenge,
    events::Published,
    fragments::FragmentCounter,
    frame::FrameKind,
    refusals::{Answer, Refusals},
    reply::Reply,
    subscriptions::Subscriptions,
};
use crate::metrics::{Kind, Reason};

/// Messages of one client.
type Socket = WebSocketStream<FragmentCounter<TokioIo<Upgraded>>>;

/// A client's connection.
pub(super) struct Connection {
    relay: Arc<Inner>,
    socket: Socket,
    /// Frees the connection's permit when it is dropped.
    admitted: WebSocketConnection,
    challenge: Option<Challenge>,
    auth_deadline: AuthDeadline,
    subscriptions: Subscriptions,
    refusals: Refusals,
    /// A `REQ` was counted and then denied by its backfill: the next one is not counted again.
    req_in_hand: bool,
    live: broadcast::Receiver<Arc<Published>>,
    heard_at: Instant,
    /// Pings without a pong.
    pings: u32,
    /// A part of a frame was written: nothing else may follow it.
    is_mid_frame: bool,
}

/// The connection is over: the client left, was too slow, or was disconnected.
struct Disconnected;

/// Outcome of counting a frame.
enum Entry {
    Admitted,
    /// Denied with this reason.
    Refused(String),
    Dropped,
}

/// The next thing to handle.
enum Next {
    Frame(Option<Message>),
    Live(Option<Arc<Published>>),
    Tick,
    Stop,
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(relay: Relay, socket: Socket, admitted: WebSocketConnection) -> Self {
        let relay = relay.0;
        relay.node.metrics.ws_connections.inc();
        relay.node.metrics.ws_unauthenticated_connections.inc();
        Self {
            auth_deadline: AuthDeadline::new(relay.node.seconds()),
            live: relay.events.listen(),
            heard_at: Instant::now(),
            pings: 0,
            is_mid_frame: false,
            challenge: None,
            subscriptions: Subscriptions::default(),
            refusals: Refusals::default(),
            req_in_hand: false,
            socket,
            admitted,
            relay,
        }
    }

    /// Serves the client until the connection ends.
    pub(super) async fn run(mut self) {
        let (relay, timing) = (Arc::clone(&self.relay), self.relay.timing);
        let mut document = relay.node.relay.subscribe();
        let mut denylist = relay.node.denylist.changes();
        let mut ticks = time::interval(timing.tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let next = tokio::select! {
                next = self.next(&mut ticks, &mut document) => next,
                Ok(()) = denylist.changed() => Next::Tick,
            };
            // A client that does not read is disconnected: nothing is queued without bound.
            let answered = timeout(timing.answer, self.answer(next)).await;
            if !matches!(answered, Ok(Ok(()))) {
                break;
            }
        }
        if self.is_mid_frame {
            return;
        }
        // A client that does not read is not waited for.
        let _ = timeout(timing.tick, self.socket.send(Message::Close(None))).await;
    }

    async fn next(
        &mut self,
        ticks: &mut time::Interval,
        document: &mut watch::Receiver<()>,
    ) -> Next {
        tokio::select! {
            frame = self.socket.next() => Next::Frame(frame.and_then(Result::ok)),
            published = self.live.recv() => Next::Live(published.ok()),
            _ = ticks.tick() => Next::Tick,
            Ok(()) = document.changed() => Next::Tick,
            () = self.relay.node.stopped() => Next::Stop,
        }
    }

    async fn answer(&mut self, next: Next) -> Result<(), Disconnected> {
        match next {
            Next::Frame(Some(message)) => self.message(message).await,
            Next::Live(Some(published)) => self.deliver(&published).await,
            Next::Tick => self.look_after().await,
            // The client left, or is too far behind, or the node stops.
            Next::Frame(None) | Next::Live(None) | Next::Stop => Err(Disconnected),
        }
    }

    async fn message(&mut self, message: Message) -> Result<(), Disconnected> {
        self.heard_at = Instant::now();
        if !self.admits_fragments(&message).await? {
            return Ok(());
        }
        match message {
            Message::Text(text) => self.frame(text.as_str()).await,
            Message::Binary(_) => self.answer_invalid("unsupported: binary message").await,
            Message::Pong(_) if self.pings > 0 => {
                self.pings -= 1;
                Ok(())
            }
            Message::Ping(_) | Message::Pong(_) => self.count_other().await.map(|_| ()),
            // Never received: the library assembles messages.
            Message::Close(_) | Message::Frame(_) => Err(Disconnected),
        }
    }

    async fn frame(&mut self, frame: &str) -> Result<(), Disconnected> {
        self.enforce_auth().await?;
        match FrameKind::of(frame) {
            FrameKind::Event => self.event(frame).await,
            FrameKind::Req => self.req(frame).await,
            FrameKind::Close => self.close(frame).await,
            FrameKind::Auth => self.auth(frame).await,
            FrameKind::Unknown => self.answer_invalid("unsupported: message type").await,
            FrameKind::Malformed => {
                self.answer_invalid("invalid: not an array that begins with a message type").await
            }
        }
    }

    /// Checks that the client is alive, allowed, and authenticated in time.
    async fn look_after(&mut self) -> Result<(), Disconnected> {
        let silent = self.heard_at.elapsed();
        if silent >= self.relay.timing.silence {
            return Err(Disconnected);
        }
        if silent >= self.relay.timing.ping {
            self.pings = self.pings.saturating_add(1);
            self.send(Message::Ping(Vec::new().into())).await?;
        }
        if self.is_denied() {
            self.relay.reject(Reason::Denied, Kind::Connection);
            self.reply(Reply::Notice(DENIED)).await?;
            return Err(Disconnected);
        }
        self.enforce_auth().await
    }

    /// Returns true if the operator denies the client's address or public key.
    fn is_denied(&self) -> bool {
        let node = &self.relay.node;
        let subject = self.admitted.subject();
        node.denies_address(self.admitted.address())
            || subject.is_some_and(|subject| node.denies_key(subject.as_str()))
    }

    /// Counts a frame of `kind` before more of it is parsed. A denied frame is not an invalid one:
    /// the client stays connected, and its other frames are not slowed.
    async fn enter(&mut self, kind: MessageKind) -> Result<Entry, Disconnected> {
        let now = self.relay.node.clock.now();
        if self.refusals.drops(kind, now) {
            self.relay.reject(Reason::RateLimit, counted_as(kind));
            return Ok(Entry::Dropped);
        }
        let Err(denied) = self.admitted.message(kind).await else {
            return Ok(Entry::Admitted);
        };
        self.relay.reject(Reason::RateLimit, counted_as(kind));
        match self.refusals.answer(kind, denied.retry_after, now) {
            Answer::Reason => return Ok(Entry::Refused(rate_limited(&denied))),
            Answer::LastNotice => self.reply(Reply::Notice(LAST_NOTICE)).await?,
            Answer::Dropped => {}
        }
        Ok(Entry::Dropped)
    }

    /// Counts a cheap frame. Returns true if it is admitted.
    async fn count_other(&mut self) -> Result<bool, Disconnected> {
        match self.enter(MessageKind::Other).await? {
            Entry::Admitted => Ok(true),
            Entry::Refused(reason) => self.reply(Reply::Notice(&reason)).await.map(|()| true),
            Entry::Dropped => Ok(false),
        }
    }

    /// Answers an invalid frame; too many of them end the connection.
    async fn answer_invalid(&mut self, reason: &str) -> Result<(), Disconnected> {
        self.relay.reject(Reason::Invalid, Kind::Invalid);
        if self.admitted.message(MessageKind::Invalid).await.is_ok() {
            return self.reply(Reply::Notice(reason)).await;
        }
        self.relay.reject(Reason::RateLimit, Kind::Invalid);
        self.reply(Reply::Notice("rate-limited: too many invalid frames")).await?;
        Err(Disconnected)
    }

    async fn reply(&mut self, reply: Reply<'_>) -> Result<(), Disconnected> {
        self.send(Message::text(reply.text())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Disconnected> {
        self.socket.send(message).await.map_err(|_| Disconnected)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let metrics = &self.relay.node.metrics;
        metrics.ws_connections.dec();
        if self.admitted.subject().is_none() {
            metrics.ws_unauthenticated_connections.dec();
        }
    }
}

/// Notice to a client that the operator denies.
const DENIED: &str = "blocked: access is denied by the operator";

/// Notice that further frames of a kind are dropped.
const LAST_NOTICE: &str = "rate-limited: too many frames that have to wait: more are dropped";

const fn counted_as(kind: MessageKind) -> Kind {
    match kind {
        MessageKind::Event => Kind::Event,
        MessageKind::Req => Kind::Req,
        MessageKind::Backfill => Kind::Backfill,
        MessageKind::Auth => Kind::Auth,
        MessageKind::Invalid => Kind::Invalid,
        MessageKind::Other => Kind::Other,
    }
}

/// Reason of a rate-limited frame.
fn rate_limited(denied: &Denied) -> String {
    format!("rate-limited: retry in {} s", denied.retry_after_secs())
}
