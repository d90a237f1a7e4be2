//! What is allowed on WebSocket connections.

use crate::{Allowance, Escalation, InFlightLimits};

/// What is allowed on WebSocket connections. What has no allowance is not limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocketLimits {
    /// Whether anything is limited at all.
    pub enabled: bool,
    /// How many connections are open at once, by one address and by all.
    pub concurrent: InFlightLimits,
    /// How often one address opens a connection.
    pub connections: Option<Allowance>,
    /// How much longer those wait who are denied again and again.
    pub escalation: Option<Escalation>,
    messages: [MessageLimits; MessageKind::ALL.len()],
}

/// What is allowed of one kind of message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageLimits {
    /// By one address, over all of its connections.
    pub by_address: Option<Allowance>,
    /// By one subject, wherever it connects from. Both must admit.
    pub by_subject: Option<Allowance>,
}

/// Kinds of messages. Each is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageKind {
    /// Something to be kept and passed on.
    Event,
    /// A question.
    Req,
    /// A question about the past, which is dearer.
    Backfill,
    /// A proof of who somebody is, whose signature has to be checked.
    Auth,
    /// What is no message.
    Invalid,
    /// Any other message.
    Other,
}

// === impl WebSocketLimits ===

impl WebSocketLimits {
    /// Limits how many connections are open, and nothing else yet.
    pub fn new(concurrent: InFlightLimits) -> Self {
        Self {
            enabled: true,
            concurrent,
            connections: None,
            escalation: None,
            messages: MessageKind::ALL.map(|_| MessageLimits::default()),
        }
    }

    /// Limits how often one address opens a connection.
    #[must_use]
    pub fn connections(self, allowance: impl Into<Allowance>) -> Self {
        Self { connections: Some(allowance.into()), ..self }
    }

    /// Limits what one address sends of a kind.
    #[must_use]
    pub fn message(mut self, kind: MessageKind, allowance: impl Into<Allowance>) -> Self {
        self.messages[kind as usize].by_address = Some(allowance.into());
        self
    }

    /// Limits what one subject sends of a kind, beside what its address does.
    #[must_use]
    pub fn message_by_subject(
        mut self,
        kind: MessageKind,
        allowance: impl Into<Allowance>,
    ) -> Self {
        self.messages[kind as usize].by_subject = Some(allowance.into());
        self
    }

    /// Lets those wait longer who are denied again and again.
    #[must_use]
    pub fn escalation(self, escalation: Escalation) -> Self {
        Self { escalation: Some(escalation), ..self }
    }

    /// Limits, or does not.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        Self { enabled, ..self }
    }

    /// What is allowed of a kind.
    pub const fn of(&self, kind: MessageKind) -> &MessageLimits {
        &self.messages[kind as usize]
    }

    /// What the process can hold at all stays bounded, whatever is limited.
    pub(super) fn concurrent_in_force(&self) -> InFlightLimits {
        if self.enabled { self.concurrent } else { self.concurrent.for_all_alone() }
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

    /// The class in keys and for observers: no word of any other guard.
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
