//! One call under way for a subject; other requests wait for it.

use std::sync::{Arc, OnceLock};

use headgate::StoreError;
use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::{fingerprint::Fingerprint, holdings::Holdings};

/// The part of a request whose subject is in the table.
pub(crate) enum Boarding<'h> {
    /// It calls the store.
    Leads(Flight<'h>),
    /// Another request is calling the store.
    Waits(Waiting<'h>),
    /// It calls the store by itself: the table is full, or nothing is needed.
    Alone,
    /// It calls the store by itself: nothing is known of the subject, which is not worth an entry.
    Stranger,
}

/// The end of a call, with its error if there was no answer.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    notify: Notify,
    error: OnceLock<StoreError>,
}

/// The call that is under way for a subject. Dropping it, also because the caller hung up, wakes
/// those that wait.
pub(crate) struct Flight<'h> {
    holdings: &'h Holdings,
    subject: Fingerprint,
    ended: Arc<Ended>,
}

/// A request that waits for a call. The units that it needs are known to the next calls for its
/// subjects.
pub(crate) struct Waiting<'h> {
    holdings: &'h Holdings,
    /// The subject of the call.
    subject: Fingerprint,
    needs: SmallVec<[(Fingerprint, u64); 2]>,
    ended: Arc<Ended>,
}

impl<'h> Flight<'h> {
    pub(crate) fn new(holdings: &'h Holdings, subject: Fingerprint, ended: Arc<Ended>) -> Self {
        Self { holdings, subject, ended }
    }

    /// Tells those that wait that there is no answer: another call would only take as long.
    pub(crate) fn fail(&self, error: &StoreError) {
        let _ = self.ended.error.set(error.clone());
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.holdings.with(self.subject, |holding| holding.flight = None);
        self.ended.notify.notify_waiters();
    }
}

impl<'h> Waiting<'h> {
    pub(crate) fn new(holdings: &'h Holdings, subject: Fingerprint, ended: Arc<Ended>) -> Self {
        Self { holdings, subject, needs: SmallVec::new(), ended }
    }

    /// Says that it needs units of this subject, too.
    pub(crate) fn need(&mut self, subject: Fingerprint, units: u64) {
        if self.holdings.with(subject, |holding| holding.waiting += units).is_some() {
            self.needs.push((subject, units));
        }
    }

    /// Waits until the call has ended; returns its error.
    pub(crate) async fn ended(&self) -> Option<StoreError> {
        let notified = self.ended.notify.notified();
        // It may have ended before it was listened to.
        let is_under_way = self.holdings.with(self.subject, |holding| {
            holding.flight.as_ref().is_some_and(|flight| Arc::ptr_eq(flight, &self.ended))
        });
        if is_under_way == Some(true) {
            notified.await;
        }
        self.ended.error.get().cloned()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        for (subject, units) in self.needs.drain(..) {
            // It is still there: no subject is removed while a request waits for it.
            self.holdings.with(subject, |holding| holding.waiting -= units);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headgate::{Check, Cost, Extra, Key, Limit};

    use super::*;
    use crate::fingerprint::Fingerprints;

    const NOW: u64 = 1_000_000;

    #[test]
    fn units_are_kept_for_a_request_only_while_it_waits() {
        let holdings = Holdings::new(64, Fingerprints::seeded(1));
        let subject = Fingerprint(1, 2);
        let limit = Limit::token_bucket(1_000, Duration::from_secs(1)).unwrap();
        let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
        let check = check.with_extra(Extra::new(100, Duration::from_millis(200)));
        let board = || holdings.board(subject, &check, NOW, true);
        assert!(matches!(board(), Boarding::Stranger));
        let Boarding::Leads(_flight) = board() else { panic!("no call is under way") };
        let [first, second] = [2, 3].map(|units| {
            let Boarding::Waits(mut waiting) = board() else { panic!("a call is under way") };
            waiting.need(subject, units);
            waiting
        });
        let kept = || holdings.with(subject, |holding| holding.waiting);
        assert_eq!(kept(), Some(5));
        drop(first);
        assert_eq!(kept(), Some(3));
        drop(second);
        assert_eq!(kept(), Some(0));
    }
}
