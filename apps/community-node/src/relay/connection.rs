//! One client: what it sends, and what it is answered.

mod auth;
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
    challenge::Challenge,
    events::Published,
    fragments::FragmentCounter,
    frame::FrameKind,
    patience::Patience,
    refusals::{Answer, Refusals},
    reply::Reply,
    subscriptions::Subscriptions,
};
use crate::metrics::{Kind, Reason};

/// The messages of one client.
type Socket = WebSocketStream<FragmentCounter<TokioIo<Upgraded>>>;

/// One client.
pub(super) struct Connection {
    relay: Arc<Inner>,
    socket: Socket,
    /// Frees the place of the connection when it is dropped.
    admitted: WebSocketConnection,
    challenge: Option<Challenge>,
    patience: Patience,
    subscriptions: Subscriptions,
    refusals: Refusals,
    /// A `REQ` was counted that came to nothing: the next one is not counted again.
    req_in_hand: bool,
    live: broadcast::Receiver<Arc<Published>>,
    heard_at: Instant,
    /// How often it was asked whether it is there and did not answer.
    pings: u32,
}

/// The connection is over: the client has gone, was too slow, or was told to go.
struct Gone;

/// Whether a frame is answered.
enum Entry {
    Admitted,
    /// It is told this.
    Refused(String),
    Dropped,
}

/// What happened next.
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
            patience: Patience::new(relay.node.seconds()),
            live: relay.events.listen(),
            heard_at: Instant::now(),
            pings: 0,
            challenge: None,
            subscriptions: Subscriptions::default(),
            refusals: Refusals::default(),
            req_in_hand: false,
            socket,
            admitted,
            relay,
        }
    }

    /// Serves the client until it has gone.
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
            // Whoever does not read what it asked for is let go: nothing piles up here.
            let answered = timeout(timing.answer, self.answer(next)).await;
            if !matches!(answered, Ok(Ok(()))) {
                break;
            }
        }
        // A client that does not read cannot be told, and is not waited for.
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

    async fn answer(&mut self, next: Next) -> Result<(), Gone> {
        match next {
            Next::Frame(Some(message)) => self.message(message).await,
            Next::Live(Some(published)) => self.deliver(&published).await,
            Next::Tick => self.look_after().await,
            // The client has gone, or is too far behind what is published, or everything ends.
            Next::Frame(None) | Next::Live(None) | Next::Stop => Err(Gone),
        }
    }

    async fn message(&mut self, message: Message) -> Result<(), Gone> {
        self.heard_at = Instant::now();
        if !self.admits_fragments(&message).await? {
            return Ok(());
        }
        match message {
            Message::Text(text) => self.frame(text.as_str()).await,
            Message::Binary(_) => self.nonsense("unsupported: binary message").await,
            Message::Pong(_) if self.pings > 0 => {
                self.pings -= 1;
                Ok(())
            }
            Message::Ping(_) | Message::Pong(_) => self.count_other().await.map(|_| ()),
            // Single frames are written, never read.
            Message::Close(_) | Message::Frame(_) => Err(Gone),
        }
    }

    async fn frame(&mut self, frame: &str) -> Result<(), Gone> {
        self.ask_who_it_is().await?;
        match FrameKind::of(frame) {
            FrameKind::Event => self.event(frame).await,
            FrameKind::Req => self.req(frame).await,
            FrameKind::Close => self.close(frame).await,
            FrameKind::Auth => self.auth(frame).await,
            FrameKind::Unknown => self.nonsense("unsupported: message type").await,
            FrameKind::Malformed => {
                self.nonsense("invalid: not an array that begins with a message type").await
            }
        }
    }

    /// Sees whether the client is still there, and has said who it is.
    async fn look_after(&mut self) -> Result<(), Gone> {
        let silent = self.heard_at.elapsed();
        if silent >= self.relay.timing.silence {
            return Err(Gone);
        }
        if silent >= self.relay.timing.ping {
            self.pings = self.pings.saturating_add(1);
            self.send(Message::Ping(Vec::new().into())).await?;
        }
        if self.is_denied() {
            self.relay.reject(Reason::Denied, Kind::Connection);
            self.reply(Reply::Notice(DENIED)).await?;
            return Err(Gone);
        }
        self.ask_who_it_is().await
    }

    /// Whether the operator denies the client's address, or who it has proved to be.
    fn is_denied(&self) -> bool {
        let node = &self.relay.node;
        let subject = self.admitted.subject();
        node.denies_address(self.admitted.address())
            || subject.is_some_and(|subject| node.denies_key(subject.as_str()))
    }

    /// Tells the client of an event, once for each subscription that wants it.
    async fn deliver(&mut self, published: &Published) -> Result<(), Gone> {
        let wanting = self.subscriptions.wanting(published);
        let json = &published.event.json;
        let texts: Vec<_> = wanting.map(|id| Reply::Event(id.as_str(), json).text()).collect();
        // The author may have been denied since it published this.
        if !texts.is_empty() && self.relay.node.denies_author(published.event.author()) {
            return Ok(());
        }
        for text in texts {
            self.send(Message::text(text)).await?;
        }
        Ok(())
    }

    /// Counts a frame of `kind`, before more of it is read. Being over a limit is no nonsense: whoever
    /// is told to wait stays, and is slowed in nothing else.
    async fn enter(&mut self, kind: MessageKind) -> Result<Entry, Gone> {
        let now = self.relay.node.clock.now();
        if self.refusals.is_deaf_to(kind, now) {
            self.relay.reject(Reason::RateLimit, counted_as(kind));
            return Ok(Entry::Dropped);
        }
        let Err(denied) = self.admitted.message(kind).await else {
            return Ok(Entry::Admitted);
        };
        self.relay.reject(Reason::RateLimit, counted_as(kind));
        match self.refusals.answer(kind, denied.retry_after, now) {
            Answer::Reason => return Ok(Entry::Refused(rate_limited(&denied))),
            Answer::LastWord => self.reply(Reply::Notice(LAST_WORD)).await?,
            Answer::Silence => {}
        }
        Ok(Entry::Dropped)
    }

    /// Counts a frame that costs next to nothing. Whether it is to be read.
    async fn count_other(&mut self) -> Result<bool, Gone> {
        match self.enter(MessageKind::Other).await? {
            Entry::Admitted => Ok(true),
            Entry::Refused(reason) => self.reply(Reply::Notice(&reason)).await.map(|()| true),
            Entry::Dropped => Ok(false),
        }
    }

    /// Says why a frame makes no sense; too many of them end the connection.
    async fn nonsense(&mut self, reason: &str) -> Result<(), Gone> {
        self.relay.reject(Reason::Invalid, Kind::Invalid);
        if self.admitted.message(MessageKind::Invalid).await.is_ok() {
            return self.reply(Reply::Notice(reason)).await;
        }
        self.relay.reject(Reason::RateLimit, Kind::Invalid);
        self.reply(Reply::Notice("rate-limited: too many invalid frames")).await?;
        Err(Gone)
    }

    async fn reply(&mut self, reply: Reply<'_>) -> Result<(), Gone> {
        self.send(Message::text(reply.text())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        self.socket.send(message).await.map_err(|_| Gone)
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

/// What somebody is told whom the operator denies.
const DENIED: &str = "blocked: access is denied by the operator";

/// What somebody is told who was told to wait too often.
const LAST_WORD: &str = "rate-limited: too many frames that have to wait: more are dropped";

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

/// What somebody is told who has to wait.
fn rate_limited(denied: &Denied) -> String {
    format!("rate-limited: retry in {} s", denied.retry_after_secs())
}
