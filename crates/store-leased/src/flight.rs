//! One call under way for a subject; other requests wait for it.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::holdings::{Fingerprint, Holdings};

/// The part of a request whose subject is in the table.
pub(crate) enum Boarding<'h> {
    /// It calls the store.
    Leads(Flight<'h>),
    /// Another request is calling the store.
    Waits(Waiting<'h>),
    /// The table is full: it calls the store by itself.
    Alone,
}

/// The call that is under way for a subject. Dropping it, also because the caller hung up, wakes
/// those that wait.
pub(crate) struct Flight<'h> {
    holdings: &'h Holdings,
    subject: Fingerprint,
    ended: Arc<Notify>,
}

/// A request that waits for a call. The units that it needs are known to the next call.
pub(crate) struct Waiting<'h> {
    holdings: &'h Holdings,
    subject: Fingerprint,
    units: u64,
    ended: Arc<Notify>,
}

impl<'h> Flight<'h> {
    pub(crate) fn new(holdings: &'h Holdings, subject: Fingerprint, ended: Arc<Notify>) -> Self {
        Self { holdings, subject, ended }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.holdings.with(self.subject, |holding| holding.flight = None);
        self.ended.notify_waiters();
    }
}

impl<'h> Waiting<'h> {
    pub(crate) fn new(
        holdings: &'h Holdings,
        subject: Fingerprint,
        units: u64,
        ended: Arc<Notify>,
    ) -> Self {
        Self { holdings, subject, units, ended }
    }

    /// Waits until the call has ended.
    pub(crate) async fn ended(&self) {
        let notified = self.ended.notified();
        // It may have ended before it was listened to.
        let is_under_way = self.holdings.with(self.subject, |holding| {
            holding.flight.as_ref().is_some_and(|flight| Arc::ptr_eq(flight, &self.ended))
        });
        if is_under_way == Some(true) {
            notified.await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let units = self.units;
        self.holdings.with(self.subject, |holding| holding.waiting -= units);
    }
}
