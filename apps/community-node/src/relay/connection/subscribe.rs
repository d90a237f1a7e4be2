//! Subscriptions of the client.

use std::mem;

use headgate_guard::MessageKind;

use super::{Connection, Disconnected, Entry};
use crate::{
    metrics::{Kind, Reason},
    relay::{
        event::VerifiedEvent,
        filter::{Query, queries},
        frame::{Parts, parts},
        reply::Reply,
        subscriptions::{self, MAX_BYTES, SubscriptionId},
    },
};

/// Reason for a subscription without a valid name.
const NO_NAME: &str = "invalid: a subscription id of 1 to 64 bytes is required";

/// Reasons for too many subscriptions, and for one that is too large by itself.
const TOO_MANY: &str = "restricted: too many subscriptions";
const TOO_LARGE: &str = "restricted: the subscription takes more than 256 KiB of memory";

/// Reason for a subscription while those of all clients take too much memory.
const NO_ROOM: &str = "error: the relay has too many subscriptions, try again later";

impl Connection {
    /// Handles `REQ`.
    pub(super) async fn req(&mut self, frame: &str) -> Result<(), Disconnected> {
        self.relay.node.metrics.ws_req.inc();
        let entry = self.enter_req().await?;
        if matches!(entry, Entry::Dropped) {
            return Ok(());
        }
        // From here on, each step parses only what it needs.
        if let Entry::Refused(reason) = entry {
            return self.refuse_req(frame, &reason).await;
        }
        let parts = parts(frame).unwrap_or_default();
        let Some(id) = named(&parts) else {
            return self.answer_invalid(NO_NAME).await;
        };
        if self.must_authenticate() {
            self.relay.reject(Reason::Auth, Kind::Req);
            return self.refuse(&id, "auth-required: missing auth").await;
        }
        match queries(&parts[1..], self.relay.node.seconds()) {
            Ok(queries) => self.subscribe(id, queries).await,
            Err(error) => {
                // Counted as a subscription, not as an invalid frame: clients may not know our
                // bounds.
                self.relay.reject(Reason::Invalid, Kind::Req);
                self.refuse_aloud(&id, &error.to_string()).await
            }
        }
    }

    async fn enter_req(&mut self) -> Result<Entry, Disconnected> {
        if mem::take(&mut self.req_in_hand) {
            return Ok(Entry::Admitted);
        }
        self.enter(MessageKind::Req).await
    }

    async fn subscribe(
        &mut self,
        id: SubscriptionId,
        queries: Vec<Query>,
    ) -> Result<(), Disconnected> {
        let bytes = subscriptions::footprint(&id, &queries);
        if !self.subscriptions.has_room_for(&id, bytes) {
            self.relay.reject(Reason::Restricted, Kind::Req);
            // Closing others helps, unless this one alone is too large.
            let reason = if bytes > MAX_BYTES { TOO_LARGE } else { TOO_MANY };
            return self.refuse(&id, reason).await;
        }
        let asks_for_the_past = queries.iter().any(Query::is_backfill);
        if asks_for_the_past {
            match self.enter(MessageKind::Backfill).await? {
                Entry::Admitted => {}
                Entry::Refused(reason) => {
                    // A denied backfill is not charged as a `REQ`, except beyond the budget of
                    // answers, which bounds the work for denied frames.
                    self.req_in_hand = true;
                    return self.refuse_aloud(&id, &reason).await;
                }
                Entry::Dropped => return Ok(()),
            }
        }
        // It replaces one of the same name, whose memory is free then.
        self.subscriptions.close(&id);
        let Some(bytes) = self.relay.subscription_budget.take(bytes) else {
            self.relay.reject(Reason::Restricted, Kind::Req);
            return self.refuse(&id, NO_ROOM).await;
        };
        let node = &self.relay.node;
        let is_shown = |event: &VerifiedEvent| !node.denies_author(event.author());
        let backfill = self.relay.events.backfill(&queries, node.seconds(), is_shown).await;
        for published in &backfill.events {
            self.send_event(&id, &published.event.json).await?;
        }
        self.reply(Reply::Eose(id.as_str())).await?;
        self.subscriptions.open(id, queries, bytes, backfill.up_to);
        Ok(())
    }

    /// Handles `CLOSE`, which has no answer.
    pub(super) async fn close(&mut self, frame: &str) -> Result<(), Disconnected> {
        if !self.count_other().await? {
            return Ok(());
        }
        let parts = parts(frame).unwrap_or_default();
        match named(&parts) {
            Some(id) => {
                self.subscriptions.close(&id);
                Ok(())
            }
            None => self.answer_invalid(NO_NAME).await,
        }
    }

    /// Refuses a `REQ` by the name of its subscription; without one it is invalid.
    pub(super) async fn refuse_req(
        &mut self,
        frame: &str,
        reason: &str,
    ) -> Result<(), Disconnected> {
        match named(&parts(frame).unwrap_or_default()) {
            Some(id) => self.refuse_aloud(&id, reason).await,
            None => self.answer_invalid(NO_NAME).await,
        }
    }

    /// Refuses a subscription with `CLOSED` and a `NOTICE`, which is all that some clients show.
    async fn refuse_aloud(
        &mut self,
        id: &SubscriptionId,
        reason: &str,
    ) -> Result<(), Disconnected> {
        self.refuse(id, reason).await?;
        self.reply(Reply::Notice(reason)).await
    }

    /// Closes a subscription.
    async fn refuse(&mut self, id: &SubscriptionId, reason: &str) -> Result<(), Disconnected> {
        self.subscriptions.close(id);
        self.reply(Reply::Closed(id.as_str(), reason)).await
    }
}

/// Name of the subscription of a `REQ` or a `CLOSE`.
fn named(parts: &Parts<'_>) -> Option<SubscriptionId> {
    parts.first().and_then(|id| SubscriptionId::read(id.get()))
}
