//! One connection that is open.

use std::{fmt, net::IpAddr};

use headgate::{Key, Space};
use smallvec::SmallVec;

use super::{Inner, MessageKind, WebSocketGuard, WebSocketLimits};
use crate::{
    AddressKey, Denied, Permit, Reason, Subject, Surface,
    judge::{Ask, Asks},
};

/// A connection that is open until this is dropped.
#[must_use = "a connection is open until it is dropped"]
pub struct WebSocketConnection {
    guard: WebSocketGuard,
    address: IpAddr,
    subject: Option<Subject>,
    _permit: Permit,
}

/// The keys of one kind of message.
struct Keys<'a> {
    kind: MessageKind,
    address: AddressKey,
    subject: Space<'a>,
}

// === impl WebSocketConnection ===

impl WebSocketConnection {
    pub(super) const fn new(guard: WebSocketGuard, address: IpAddr, permit: Permit) -> Self {
        Self { guard, address, subject: None, _permit: permit }
    }

    /// The client's address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Who the client has proved to be.
    pub const fn subject(&self) -> Option<&Subject> {
        self.subject.as_ref()
    }

    /// From now on messages count by this subject, too.
    pub fn authenticate(&mut self, subject: Subject) {
        self.subject = Some(subject);
    }

    /// Takes one message of `kind`, by address and, once that is known, by subject, or nothing.
    pub async fn message(&self, kind: MessageKind) -> Result<(), Denied> {
        self.messages(&[kind]).await
    }

    /// Takes one message that is of several kinds at once, all or nothing: a question about the
    /// past is [`Req`](MessageKind::Req) and [`Backfill`](MessageKind::Backfill).
    pub async fn messages(&self, kinds: &[MessageKind]) -> Result<(), Denied> {
        let limits = self.guard.limits();
        if !limits.enabled {
            return Ok(());
        }
        let inner = &*self.guard.0;
        // Each kind once, however often it is named.
        let named = MessageKind::ALL.into_iter().filter(|kind| kinds.contains(kind));
        let keys: SmallVec<[Keys<'_>; 2]> = named.map(|kind| self.keys(inner, kind)).collect();
        let asks: Asks<'_> = keys.iter().flat_map(|keys| self.asks(&limits, keys)).collect();
        let ruling = inner.judge.decide(&asks, limits.escalation.as_ref()).await;
        let class = kinds.last().map_or(CLASSLESS, |kind| kind.class());
        ruling.map(|_| ()).map_err(|refusal| inner.denied(Surface::Message, class, refusal))
    }

    fn keys<'a>(&self, inner: &'a Inner, kind: MessageKind) -> Keys<'a> {
        let prefixes = &inner.messages[kind as usize];
        Keys {
            kind,
            address: inner.judge.backend().address_key(&prefixes.address, self.address),
            subject: Space::new(&prefixes.subject, ""),
        }
    }

    /// The limits on one kind of message, by address and by subject.
    fn asks<'a>(&'a self, limits: &'a WebSocketLimits, keys: &'a Keys<'a>) -> Asks<'a> {
        let limits = limits.of(keys.kind);
        let mut asks = Asks::new();
        if let (Some(allowance), Ok(key)) = (&limits.by_address, Key::new(&keys.address)) {
            asks.push(Ask { key, allowance, reason: Reason::Address });
        }
        let subject = self.subject.as_ref().and_then(Subject::key);
        if let (Some(allowance), Some(key)) = (&limits.by_subject, subject) {
            asks.push(Ask { key: key.within(&keys.subject), allowance, reason: Reason::Subject });
        }
        asks
    }
}

/// A message of no kind is never denied.
const CLASSLESS: &str = "ws";

/// Says neither where the client is nor who it is.
impl fmt::Debug for WebSocketConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authenticated = self.subject.is_some();
        f.debug_struct("WebSocketConnection")
            .field("authenticated", &authenticated)
            .finish_non_exhaustive()
    }
}
