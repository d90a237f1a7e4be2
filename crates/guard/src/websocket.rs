//! Limits on WebSocket connections and their messages.
//!
//! | module | contents |
//! |---|---|
//! | `limits` | [`WebSocketLimits`], [`MessageKind`] |
//! | `connection` | [`WebSocketConnection`]: an open connection |

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
    decider::{Decider, LimitCheck, Rejection},
};

/// Limits WebSocket connections and messages. Independent of the server.
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
/// // At the upgrade: respond to a denial with 429.
/// let mut connection = guard.connect("198.51.100.7".parse()?).await?;
/// // For each message, as soon as its kind is known.
/// connection.message(MessageKind::Event).await?;
/// // From now on, messages are counted by this subject, too.
/// connection.authenticate(Subject::new("npub1...")?);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct WebSocketGuard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    decider: Decider,
    limits: ArcSwap<WebSocketLimits>,
    open: Arc<InFlight>,
    connections: Box<str>,
    messages: [Prefixes; MessageKind::ALL.len()],
}

/// Key prefixes of one kind of message.
#[derive(Debug)]
struct Prefixes {
    address: Box<str>,
    subject: Box<str>,
}

/// Class of connections, in keys and for observers.
const CONNECTION: &str = "ws-connect";

// === impl WebSocketGuard ===

impl WebSocketGuard {
    /// A guard with `limits` that counts in `backend`. Open connections are counted in this
    /// process.
    pub fn new(limits: WebSocketLimits, backend: Backend) -> Self {
        let prefixes = |kind: MessageKind| Prefixes {
            address: backend.prefix(kind.class(), "ip"),
            subject: backend.prefix(kind.class(), "sub"),
        };
        Self(Arc::new(Inner {
            connections: backend.prefix(CONNECTION, "ip"),
            messages: MessageKind::ALL.map(prefixes),
            decider: Decider::new(backend),
            limits: ArcSwap::from_pointee(limits),
            open: InFlight::new(),
        }))
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<WebSocketLimits> {
        self.0.limits.load_full()
    }

    /// Replaces the limits, for open connections too. Counters are kept.
    pub fn replace(&self, limits: WebSocketLimits) {
        self.0.limits.store(Arc::new(limits));
    }

    /// Number of open connections.
    pub fn open(&self) -> u32 {
        self.0.open.total()
    }

    /// Opens a connection from `address`, within the limits on open connections and on new ones.
    ///
    /// The connection is open until it is dropped.
    pub async fn connect(&self, address: IpAddr) -> Result<WebSocketConnection, Denied> {
        let inner = &*self.0;
        let limits = self.limits();
        let key = inner.decider.backend().address_key(&inner.connections, address);
        // The slot first: a denial for lack of one does not count against the rate.
        let concurrent = limits.concurrent_in_force();
        let permit = inner.open.acquire(&*key, concurrent).map_err(|busy| {
            let rejection = Rejection::new(busy.reason(), UNKNOWN_WAIT);
            inner.denied(Surface::Connection, CONNECTION, rejection)
        })?;
        if let (Some(allowance), Ok(key)) = (limits.connections_in_force(), Key::new(&key)) {
            let check = LimitCheck { key, allowance, reason: Reason::Address };
            let result = inner.decider.decide(&[check], limits.escalation.as_ref()).await;
            result.map_err(|rejection| inner.denied(Surface::Connection, CONNECTION, rejection))?;
        }
        Ok(WebSocketConnection::new(self.clone(), address, permit))
    }
}

impl Inner {
    fn denied(&self, surface: Surface, class: &str, rejection: Rejection) -> Denied {
        self.decider.backend().rejected(class, rejection.at(surface))
    }
}
