//! An open connection.

use std::{fmt, net::IpAddr};

use headgate::{Key, KeySpace};
use smallvec::SmallVec;

use super::{Inner, MessageKind, WebSocketGuard, WebSocketLimits};
use crate::{
    AddressKey, Denied, Permit, Reason, Subject, Surface,
    decider::{LimitCheck, LimitChecks},
};

/// An open connection. Drop it when the connection closes.
#[must_use = "the connection counts as open until it is dropped"]
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
    subject: KeySpace<'a>,
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

    /// The authenticated client.
    pub const fn subject(&self) -> Option<&Subject> {
        self.subject.as_ref()
    }

    /// Counts messages by this subject, too, from now on.
    pub fn authenticate(&mut self, subject: Subject) {
        self.subject = Some(subject);
    }

    /// Counts one message of `kind`, by address and, if it is known, by subject.
    pub async fn message(&self, kind: MessageKind) -> Result<(), Denied> {
        self.messages(&[kind]).await
    }

    /// Counts one message of several kinds, against all limits or none: a query of stored events is
    /// both [`Req`](MessageKind::Req) and [`Backfill`](MessageKind::Backfill).
    pub async fn messages(&self, kinds: &[MessageKind]) -> Result<(), Denied> {
        let limits = self.guard.limits();
        if !limits.enabled {
            return Ok(());
        }
        let inner = &*self.guard.0;
        // Duplicates count once.
        let named = MessageKind::ALL.into_iter().filter(|kind| kinds.contains(kind));
        let keys: SmallVec<[Keys<'_>; 2]> = named.map(|kind| self.keys(inner, kind)).collect();
        let checks: LimitChecks<'_> =
            keys.iter().flat_map(|keys| self.checks(&limits, keys)).collect();
        let result = inner.decider.decide(&checks, limits.escalation.as_ref()).await;
        let class = kinds.last().map_or(CLASSLESS, |kind| kind.class());
        result.map(|_| ()).map_err(|rejection| inner.denied(Surface::Message, class, rejection))
    }

    fn keys<'a>(&self, inner: &'a Inner, kind: MessageKind) -> Keys<'a> {
        let prefixes = &inner.messages[kind as usize];
        Keys {
            kind,
            address: inner.decider.backend().address_key(&prefixes.address, self.address),
            subject: KeySpace::new(&prefixes.subject, ""),
        }
    }

    /// The limits on one kind of message, by address and by subject.
    fn checks<'a>(&'a self, limits: &'a WebSocketLimits, keys: &'a Keys<'a>) -> LimitChecks<'a> {
        let limits = limits.of(keys.kind);
        let mut checks = LimitChecks::new();
        if let (Some(allowance), Ok(key)) = (&limits.by_address, Key::new(&keys.address)) {
            checks.push(LimitCheck { key, allowance, reason: Reason::Address });
        }
        let subject = self.subject.as_ref().and_then(Subject::key);
        if let (Some(allowance), Some(key)) = (&limits.by_subject, subject) {
            checks.push(LimitCheck {
                key: key.within(&keys.subject),
                allowance,
                reason: Reason::Subject,
            });
        }
        checks
    }
}

/// Class of a message without a kind. Such a message is never denied.
const CLASSLESS: &str = "ws";

/// Omits the address and the subject.
impl fmt::Debug for WebSocketConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authenticated = self.subject.is_some();
        f.debug_struct("WebSocketConnection")
            .field("authenticated", &authenticated)
            .finish_non_exhaustive()
    }
}
