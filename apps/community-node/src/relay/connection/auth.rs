//! Authentication of the client.

use headgate_guard::{MessageKind, Subject};
use nostr::key::PublicKey;

use super::{Connection, DENIED, Disconnected, Entry};
use crate::{
    metrics::{Kind, Reason},
    relay::{
        SERVICE,
        challenge::{AuthError, Challenge},
        event::claimed_id,
        frame::parts,
        reply::Reply,
    },
};

impl Connection {
    /// Returns true if the client must authenticate first.
    pub(super) fn must_authenticate(&self) -> bool {
        let now = self.relay.node.seconds();
        let enforced = self.relay.node.relay.with(|document| document.auth.is_enforced(now));
        enforced && self.admitted.subject().is_none()
    }

    /// Sends a challenge if authentication is required, and disconnects the client after the
    /// deadline.
    pub(super) async fn enforce_auth(&mut self) -> Result<(), Disconnected> {
        if !self.must_authenticate() {
            self.auth_deadline.forget();
            return Ok(());
        }
        let now = self.relay.node.seconds();
        // It may have a challenge already, for a protected event.
        if self.auth_deadline.ask(now) {
            self.challenge().await?;
        }
        let expiry =
            self.relay.node.relay.with(|document| self.auth_deadline.expiry(&document.auth, now));
        let Some(expiry) = expiry else {
            return Ok(());
        };
        let disconnects = &self.relay.node.metrics.ws_auth_disconnect;
        disconnects.with_label_values(&[expiry.name()]).inc();
        self.reply(Reply::Notice(expiry.notice())).await?;
        Err(Disconnected)
    }

    /// Sends the challenge, which is the same for the whole connection.
    pub(super) async fn challenge(&mut self) -> Result<(), Disconnected> {
        let challenge = self.challenge.get_or_insert_with(Challenge::random).clone();
        self.reply(Reply::Auth(challenge.as_str())).await
    }

    /// Returns true if the client authenticated as `author`.
    pub(super) fn has_signed_in_as(&self, author: &PublicKey) -> bool {
        let subject = self.admitted.subject();
        subject.is_some_and(|subject| subject.as_str() == author.to_hex())
    }

    /// Handles `AUTH`, even if authentication is not required.
    pub(super) async fn auth(&mut self, frame: &str) -> Result<(), Disconnected> {
        match self.enter(MessageKind::Auth).await? {
            Entry::Admitted => {}
            Entry::Refused(reason) => return self.refuse_auth(frame, &reason).await,
            Entry::Dropped => return Ok(()),
        }
        if self.challenge.is_none() {
            self.challenge().await?;
            return self.refuse_auth(frame, &AuthError::NotAsked.to_string()).await;
        }
        match self.verify(frame) {
            Ok(pubkey) if self.relay.node.denies_key(&pubkey.to_hex()) => {
                self.relay.reject(Reason::Denied, Kind::Auth);
                self.refuse_auth(frame, DENIED).await?;
                Err(Disconnected)
            }
            Ok(pubkey) => {
                self.set_pubkey(&pubkey);
                self.auth_answer(frame, true, "").await
            }
            Err(error) => {
                self.relay.reject(Reason::Auth, Kind::Auth);
                self.relay.node.metrics.auth_failure.with_label_values(&[SERVICE]).inc();
                self.refuse_auth(frame, &error.to_string()).await
            }
        }
    }

    fn verify(&self, frame: &str) -> Result<PublicKey, AuthError> {
        let parts = parts(frame).ok_or(AuthError::Malformed)?;
        let event = parts.first().ok_or(AuthError::Malformed)?;
        let challenge = self.challenge.as_ref().ok_or(AuthError::NotAsked)?;
        challenge.verify(event.get(), &self.relay.url, self.relay.node.seconds())
    }

    fn set_pubkey(&mut self, pubkey: &PublicKey) {
        // Hexadecimal digits are always a valid name.
        let Ok(subject) = Subject::new(&pubkey.to_hex()) else {
            return;
        };
        let metrics = &self.relay.node.metrics;
        metrics.auth_success.with_label_values(&[SERVICE]).inc();
        if self.admitted.subject().is_none() {
            metrics.ws_unauthenticated_connections.dec();
        }
        self.admitted.authenticate(subject);
    }

    pub(super) async fn refuse_auth(
        &mut self,
        frame: &str,
        reason: &str,
    ) -> Result<(), Disconnected> {
        self.auth_answer(frame, false, reason).await
    }

    async fn auth_answer(
        &mut self,
        frame: &str,
        known: bool,
        reason: &str,
    ) -> Result<(), Disconnected> {
        let parts = parts(frame).unwrap_or_default();
        match parts.first().and_then(|event| claimed_id(event.get())) {
            Some(id) => self.reply(Reply::Ok(&id, known, reason)).await,
            None => self.answer_invalid(reason).await,
        }
    }
}
