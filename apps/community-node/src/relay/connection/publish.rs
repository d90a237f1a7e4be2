//! Events that the client publishes.

use headgate_guard::MessageKind;
use nostr::event::EventId;

use super::{Connection, DENIED, Disconnected, Entry};
use crate::{
    metrics::{Kind, Reason},
    relay::{
        SERVICE,
        event::{EventBounds, EventError, MAX_AGE_SECONDS, VerifiedEvent, claimed_id},
        events::{Publication, Source},
        frame::parts,
        reply::Reply,
    },
};

impl Connection {
    /// Handles `EVENT`.
    pub(super) async fn event(&mut self, frame: &str) -> Result<(), Disconnected> {
        self.relay.node.metrics.ws_event.inc();
        match self.enter(MessageKind::Event).await? {
            Entry::Admitted => {}
            Entry::Refused(reason) => return self.refuse_event(frame, &reason).await,
            Entry::Dropped => return Ok(()),
        }
        if self.must_authenticate() {
            self.relay.reject(Reason::Auth, Kind::Event);
            return self.refuse_event(frame, "auth-required: missing auth").await;
        }
        match self.read_event(frame) {
            Ok(event) => self.publish(event).await,
            Err(error) => {
                self.relay.reject(Reason::Invalid, Kind::Event);
                self.refuse_event(frame, &error.to_string()).await
            }
        }
    }

    fn read_event(&self, frame: &str) -> Result<VerifiedEvent, EventError> {
        let parts = parts(frame).ok_or(EventError::Malformed)?;
        let [event] = parts[..] else {
            return Err(EventError::Malformed);
        };
        let bounds = self.relay.node.relay.with(|document| EventBounds::of(&document.limits));
        VerifiedEvent::read(event.get(), bounds, self.relay.node.seconds())
    }

    async fn publish(&mut self, event: VerifiedEvent) -> Result<(), Disconnected> {
        let (id, now) = (event.event.id, self.relay.node.seconds());
        if self.relay.node.denies_author(event.author()) {
            self.relay.reject(Reason::Denied, Kind::Event);
            return self.reply(Reply::Ok(&id, false, DENIED)).await;
        }
        if event.is_protected() && !self.has_signed_in_as(event.author()) {
            return self.refuse_protected(&id).await;
        }
        self.relay.node.metrics.ingest_received.with_label_values(&[SERVICE, "ws"]).inc();
        let published = self.relay.events.publish(event, Source::Client, now, MAX_AGE_SECONDS);
        self.count(published);
        let (taken, note) = match published {
            Publication::New => (true, ""),
            Publication::Duplicate => (true, "duplicate: already have this event"),
            Publication::Outdated => (true, "duplicate: already have a newer event"),
            Publication::Deleted => (false, "blocked: the author has deleted this event"),
        };
        self.reply(Reply::Ok(&id, taken, note)).await
    }

    fn count(&self, published: Publication) {
        let metrics = &self.relay.node.metrics;
        match published {
            Publication::Duplicate => metrics.dedupe_hits.inc(),
            Publication::New | Publication::Outdated => metrics.dedupe_misses.inc(),
            Publication::Deleted => self.relay.reject(Reason::Restricted, Kind::Event),
        }
    }

    /// Refuses a protected event of another author (NIP-70); a client that is not authenticated is
    /// sent a challenge.
    async fn refuse_protected(&mut self, id: &EventId) -> Result<(), Disconnected> {
        if self.admitted.subject().is_some() {
            self.relay.reject(Reason::Restricted, Kind::Event);
            let reason = "restricted: this event may only be published by its author";
            return self.reply(Reply::Ok(id, false, reason)).await;
        }
        self.relay.reject(Reason::Auth, Kind::Event);
        self.challenge().await?;
        let reason = "auth-required: this event may only be published by its author";
        self.reply(Reply::Ok(id, false, reason)).await
    }

    /// Refuses an event by its id; without one it is invalid.
    pub(super) async fn refuse_event(
        &mut self,
        frame: &str,
        reason: &str,
    ) -> Result<(), Disconnected> {
        let parts = parts(frame).unwrap_or_default();
        match parts.first().and_then(|event| claimed_id(event.get())) {
            Some(id) => self.reply(Reply::Ok(&id, false, reason)).await,
            None => self.answer_invalid(reason).await,
        }
    }
}
