//! What the client asks for.

use std::mem;

use headgate_guard::MessageKind;

use super::{Connection, Entry, Gone};
use crate::{
    metrics::{Kind, Reason},
    relay::{
        event::VerifiedEvent,
        filter::{Query, queries},
        frame::{Parts, parts},
        reply::Reply,
        subscriptions::{MAX_BYTES, SubscriptionId},
    },
};

/// What is said of a subscription without a name.
const NO_NAME: &str = "invalid: a subscription id of 1 to 64 bytes is required";

/// What is said when there is no room for one more subscription, or would not be for this one alone.
const TOO_MANY: &str = "restricted: too many subscriptions";
const TOO_LARGE: &str = "restricted: the subscription takes more than 256 KiB of memory";

impl Connection {
    /// Answers `REQ`.
    pub(super) async fn req(&mut self, frame: &str) -> Result<(), Gone> {
        self.relay.node.metrics.ws_req.inc();
        let entry = self.enter_req().await?;
        if matches!(entry, Entry::Dropped) {
            return Ok(());
        }
        // From here on the frame is read no further than each step needs.
        if let Entry::Refused(reason) = entry {
            return self.refuse_req(frame, &reason).await;
        }
        let parts = parts(frame).unwrap_or_default();
        let Some(id) = named(&parts) else {
            return self.nonsense(NO_NAME).await;
        };
        if self.is_nobody() {
            self.relay.reject(Reason::Auth, Kind::Req);
            return self.refuse(&id, "auth-required: missing auth").await;
        }
        match queries(&parts[1..], self.relay.node.seconds()) {
            Ok(queries) => self.subscribe(id, queries).await,
            Err(error) => {
                // It was counted as a subscription: a client may ask for more than there is here.
                self.relay.reject(Reason::Invalid, Kind::Req);
                self.refuse_aloud(&id, &error.to_string()).await
            }
        }
    }

    async fn enter_req(&mut self) -> Result<Entry, Gone> {
        if mem::take(&mut self.req_in_hand) {
            return Ok(Entry::Admitted);
        }
        self.enter(MessageKind::Req).await
    }

    async fn subscribe(&mut self, id: SubscriptionId, queries: Vec<Query>) -> Result<(), Gone> {
        let bytes = queries.iter().map(Query::footprint).sum();
        if !self.subscriptions.has_room_for(&id, bytes) {
            self.relay.reject(Reason::Restricted, Kind::Req);
            // To close others helps, or it does not.
            let reason = if bytes > MAX_BYTES { TOO_LARGE } else { TOO_MANY };
            return self.refuse(&id, reason).await;
        }
        let asks_for_the_past = queries.iter().any(Query::is_backfill);
        if asks_for_the_past {
            match self.enter(MessageKind::Backfill).await? {
                Entry::Admitted => {}
                Entry::Refused(reason) => {
                    // What is refused takes nothing. Beyond the budget of answers it does, so that
                    // no more than that is read for nothing.
                    self.req_in_hand = true;
                    return self.refuse_aloud(&id, &reason).await;
                }
                Entry::Dropped => return Ok(()),
            }
        }
        let node = &self.relay.node;
        let is_shown = |event: &VerifiedEvent| !node.denies_author(event.author());
        let backfill = self.relay.events.backfill(&queries, node.seconds(), is_shown).await;
        for published in &backfill.events {
            self.reply(Reply::Event(id.as_str(), &published.event.json)).await?;
        }
        self.reply(Reply::Eose(id.as_str())).await?;
        self.subscriptions.open(id, queries, bytes, backfill.up_to);
        Ok(())
    }

    /// Answers `CLOSE`, to which nothing is said.
    pub(super) async fn close(&mut self, frame: &str) -> Result<(), Gone> {
        if !self.count_other().await? {
            return Ok(());
        }
        let parts = parts(frame).unwrap_or_default();
        match named(&parts) {
            Some(id) => {
                self.subscriptions.close(&id);
                Ok(())
            }
            None => self.nonsense(NO_NAME).await,
        }
    }

    /// Refuses a `REQ` by the name of its subscription; without one it is no `REQ` at all.
    pub(super) async fn refuse_req(&mut self, frame: &str, reason: &str) -> Result<(), Gone> {
        match named(&parts(frame).unwrap_or_default()) {
            Some(id) => self.refuse_aloud(&id, reason).await,
            None => self.nonsense(NO_NAME).await,
        }
    }

    /// Refuses a subscription, and says so in a `NOTICE` too: some clients show nothing else.
    async fn refuse_aloud(&mut self, id: &SubscriptionId, reason: &str) -> Result<(), Gone> {
        self.refuse(id, reason).await?;
        self.reply(Reply::Notice(reason)).await
    }

    /// Says that there is no such subscription, and sees to it.
    async fn refuse(&mut self, id: &SubscriptionId, reason: &str) -> Result<(), Gone> {
        self.subscriptions.close(id);
        self.reply(Reply::Closed(id.as_str(), reason)).await
    }
}

/// The name of the subscription that a `REQ` or a `CLOSE` is about.
fn named(parts: &Parts<'_>) -> Option<SubscriptionId> {
    parts.first().and_then(|id| SubscriptionId::read(id.get()))
}
