//! Limits on WebSocket connections and messages.

use crate::{Allowance, Escalation, InFlightLimits};

/// Limits on WebSocket connections and messages. Without an allowance there is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// `true` if limits are in force.
    pub enabled: bool,
    /// Maximum number of open connections, of one address and of all addresses.
    pub concurrent: InFlightLimits,
    /// Rate of new connections of one address.
    pub connections: Option<Allowance>,
    /// Penalties for clients that are denied repeatedly.
    pub escalation: Option<Escalation>,
    messages: [MessageLimits; MessageKind::ALL.len()],
}

/// Limits of one kind of message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageLimits {
    /// Limit of one address over all of its connections.
    pub by_address: Option<Allowance>,
    /// Limit of one subject over all of its addresses. Both limits must admit.
    pub by_subject: Option<Allowance>,
}

/// Kind of message. Each is counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// An event to store and forward.
    Event,
    /// A query.
    Req,
    /// A query of stored events, which is more expensive.
    Backfill,
    /// An authentication, whose signature has to be verified.
    Auth,
    /// An invalid message.
    Invalid,
    /// Any other message.
    Other,
}

// === impl WebSocketLimits ===

impl WebSocketLimits {
    /// Limits open connections only.
    pub fn new(concurrent: InFlightLimits) -> Self {
        Self {
            enabled: true,
            concurrent,
            connections: None,
            escalation: None,
            messages: MessageKind::ALL.map(|_| MessageLimits::default()),
        }
    }

    /// Limits the rate of new connections of one address.
    #[must_use]
    pub fn connections(self, allowance: impl Into<Allowance>) -> Self {
        Self { connections: Some(allowance.into()), ..self }
    }

    /// Limits messages of a kind by address.
    #[must_use]
    pub fn message(mut self, kind: MessageKind, allowance: impl Into<Allowance>) -> Self {
        self.messages[kind as usize].by_address = Some(allowance.into());
        self
    }

    /// Limits messages of a kind by subject, in addition to the limit by address.
    #[must_use]
    pub fn message_by_subject(
        mut self,
        kind: MessageKind,
        allowance: impl Into<Allowance>,
    ) -> Self {
        self.messages[kind as usize].by_subject = Some(allowance.into());
        self
    }

    /// Lengthens the wait of clients that are denied repeatedly.
    #[must_use]
    pub fn escalation(self, escalation: Escalation) -> Self {
        Self { escalation: Some(escalation), ..self }
    }

    /// Enables or disables the limits.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        Self { enabled, ..self }
    }

    /// The limits of a kind.
    pub const fn of(&self, kind: MessageKind) -> &MessageLimits {
        &self.messages[kind as usize]
    }

    /// The total stays bounded while limits are disabled.
    pub(super) fn concurrent_in_force(&self) -> InFlightLimits {
        if self.enabled { self.concurrent } else { self.concurrent.total_only() }
    }

    pub(super) fn connections_in_force(&self) -> Option<&Allowance> {
        self.connections.as_ref().filter(|_| self.enabled)
    }
}

// === impl MessageKind ===

impl MessageKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Event, Self::Req, Self::Backfill, Self::Auth, Self::Invalid, Self::Other];

    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Req => "req",
            Self::Backfill => "backfill",
            Self::Auth => "auth",
            Self::Invalid => "invalid",
            Self::Other => "other",
        }
    }

    /// The class in keys and for observers. Distinct from the classes of other guards.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Event => "ws-event",
            Self::Req => "ws-req",
            Self::Backfill => "ws-backfill",
            Self::Auth => "ws-auth",
            Self::Invalid => "ws-invalid",
            Self::Other => "ws-other",
        }
    }
}
