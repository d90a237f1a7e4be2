//! WebSocket connections: how often and how many are opened, and what is sent on them.
//!
//! | module | what it owns |
//! |---|---|
//! | `limits` | [`WebSocketLimits`], [`MessageKind`]: what is allowed |
//! | `connection` | [`WebSocketConnection`]: one that is open, and its messages |

mod connection;
mod limits;

use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use headgate::Key;

pub use self::{
    connection::WebSocketConnection,
    limits::{MessageKind, MessageLimits, WebSocketLimits},
};
use crate::{
    Backend, Denied, InFlight, Reason, Surface,
    backend::UNKNOWN_WAIT,
    judge::{Ask, Judge, Refusal},
};

/// Decides on WebSocket connections, whatever serves them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use headgate_guard::{
///     Allowance, Backend, InFlightLimits, MessageKind, Subject, WebSocketGuard, WebSocketLimits,
/// };
///
/// let limits = WebSocketLimits::new(InFlightLimits::new(20, 10_000))
///     .connections(Allowance::per_minute(30)?)
///     .message(MessageKind::Event, Allowance::per_minute(120)?)
///     .message_by_subject(MessageKind::Event, Allowance::per_minute(60)?);
/// let guard = WebSocketGuard::new(limits, Backend::memory());
///
/// // At the upgrade: a denial is a 429.
/// let mut connection = guard.connect("198.51.100.7".parse()?).await?;
/// // For each message, before it is parsed further than to see what it is.
/// connection.message(MessageKind::Event).await?;
/// // From now on by this subject, too.
/// connection.authenticate(Subject::new("npub1...")?);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct WebSocketGuard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    judge: Judge,
    limits: ArcSwap<WebSocketLimits>,
    open: Arc<InFlight>,
    connections: Box<str>,
    messages: [Prefixes; MessageKind::ALL.len()],
}

/// What stands before the addresses and subjects of one kind of message.
#[derive(Debug)]
struct Prefixes {
    address: Box<str>,
    subject: Box<str>,
}

/// The class of connections, in keys and for observers.
const CONNECTION: &str = "ws-connect";

// === impl WebSocketGuard ===

impl WebSocketGuard {
    /// Guards with `limits`, counting in `backend`. What is open is counted in this process.
    pub fn new(limits: WebSocketLimits, backend: Backend) -> Self {
        let prefixes = |kind: MessageKind| Prefixes {
            address: backend.prefix(kind.class(), "ip"),
            subject: backend.prefix(kind.class(), "sub"),
        };
        Self(Arc::new(Inner {
            connections: backend.prefix(CONNECTION, "ip"),
            messages: MessageKind::ALL.map(prefixes),
            judge: Judge::new(backend),
            limits: ArcSwap::from_pointee(limits),
            open: InFlight::new(),
        }))
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<WebSocketLimits> {
        self.0.limits.load_full()
    }

    /// Puts other limits in force, for connections that are open too. What was counted stays counted.
    pub fn replace(&self, limits: WebSocketLimits) {
        self.0.limits.store(Arc::new(limits));
    }

    /// How many connections are open.
    pub fn open(&self) -> u32 {
        self.0.open.total()
    }

    /// Opens a connection of `address`, if it has neither too many nor opened too many lately.
    ///
    /// It is open until the answer is dropped.
    pub async fn connect(&self, address: IpAddr) -> Result<WebSocketConnection, Denied> {
        let inner = &*self.0;
        let limits = self.limits();
        let key = inner.judge.backend().address_key(&inner.connections, address);
        // The slot comes first: who gets none has not used up its rate.
        let concurrent = limits.concurrent_in_force();
        let permit = inner.open.acquire(&*key, concurrent).map_err(|busy| {
            let refusal = Refusal::new(busy.reason(), UNKNOWN_WAIT);
            inner.denied(Surface::Connection, CONNECTION, refusal)
        })?;
        if let (Some(allowance), Ok(key)) = (limits.connections_in_force(), Key::new(&key)) {
            let ask = Ask { key, allowance, reason: Reason::Address };
            let ruling = inner.judge.decide(&[ask], limits.escalation.as_ref()).await;
            ruling.map_err(|refusal| inner.denied(Surface::Connection, CONNECTION, refusal))?;
        }
        Ok(WebSocketConnection::new(self.clone(), address, permit))
    }
}

impl Inner {
    fn denied(&self, surface: Surface, class: &str, refusal: Refusal) -> Denied {
        self.judge.backend().rejected(class, refusal.at(surface))
    }
}
