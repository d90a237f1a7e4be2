//! The task that renews and releases places.

use std::{future::pending, sync::Arc};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use headgate::{Permit, SettleError};
use tokio::{
    select,
    time::{Instant, sleep_until, timeout},
};
use tracing::debug;

use super::{
    Keeper, RENEWALS_PER_LEASE,
    table::{Job, Next},
};
use crate::tower::in_flight::{Places, held::HeldPlace};

/// A task that takes care of the table, until it is dropped.
pub(super) struct Running {
    keeper: Arc<Keeper>,
    has_stopped: bool,
}

/// Maximum number of concurrent calls to the store.
const MAX_CALLS: usize = 256;

// === impl Running ===

impl Running {
    pub(super) const fn new(keeper: Arc<Keeper>) -> Self {
        Self { keeper, has_stopped: false }
    }

    /// Runs until no request is in flight and every place is released.
    pub(super) async fn run(mut self) {
        let keeper = Arc::clone(&self.keeper);
        let mut calls = FuturesUnordered::new();
        loop {
            let next = if calls.len() < MAX_CALLS {
                keeper.table().next(Instant::now(), calls.is_empty())
            } else {
                Next::Wait(None)
            };
            let due = match next {
                Next::Job(job) => {
                    calls.push(keeper.perform(job));
                    continue;
                }
                Next::Wait(due) => due,
                Next::Stop => break self.has_stopped = true,
            };
            let is_due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            select! {
                Some(()) = calls.next() => {}
                () = keeper.changed.notified(), if calls.len() < MAX_CALLS => {}
                () = is_due => {}
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_stopped {
            // The runtime shuts down, or there is none.
            let mut table = self.keeper.table();
            table.is_running = false;
            let waiting = table.take_waiting();
            drop(table);
            drop(waiting);
        }
        self.keeper.idle.notify_waiters();
    }
}

// === impl Keeper ===

impl Keeper {
    async fn perform(&self, job: Job) {
        match job {
            Job::Renew(id, place) => self.renew(id, place).await,
            Job::Release(HeldPlace { permit, places, .. }) => self.release(permit, &places).await,
            Job::Complete(call) => {
                let (places, lease) = (Arc::clone(&call.places), call.places.lease());
                if let Ok(Ok(Some(permit))) = timeout(lease, call).await {
                    self.release(permit, &places).await;
                }
            }
        }
    }

    /// Renews the lease of a request in flight, or takes a place again if it has ended.
    async fn renew(&self, id: u64, mut place: HeldPlace) {
        let (sent, lease) = (Instant::now(), place.places.lease());
        let interval = lease / RENEWALS_PER_LEASE;
        let renewed = timeout(interval, self.limiter.renew(&place.permit, lease)).await;
        let mut due = Instant::now() + interval;
        match renewed {
            Ok(Ok(_)) => {
                place.extend(sent);
                due = sent + interval;
            }
            Ok(Err(SettleError::Ended)) => self.take_again(&mut place).await,
            // The store did not answer: try again soon.
            _ => {
                debug!("failed to renew the lease of a request in flight");
                due = Instant::now() + interval / 2;
                if Instant::now() >= place.ends {
                    self.lost(&mut place);
                }
            }
        }
        let ended = self.table().put_back(id, place, due);
        if let Some(HeldPlace { permit, places, .. }) = ended {
            self.release(permit, &places).await;
        }
    }

    /// Takes a place for a request whose lease has ended, so that it counts again.
    async fn take_again(&self, place: &mut HeldPlace) {
        self.lost(place);
        let (sent, places) = (Instant::now(), Arc::clone(&place.places));
        let taken = places.acquire(&self.limiter, &self.backend, place.address);
        if let Ok(Ok(Some(permit))) = timeout(places.lease() / RENEWALS_PER_LEASE, taken).await {
            let ended = place.replace(permit, sent);
            // While a store is away, `FailMode::Closed` ends leases that it still has.
            self.release(ended, &places).await;
        }
    }

    fn lost(&self, place: &mut HeldPlace) {
        if !std::mem::replace(&mut place.is_lost, true) {
            self.backend.place_lost(place.places.class());
        }
    }

    async fn release(&self, permit: Permit, places: &Places) {
        if !matches!(timeout(places.lease(), self.limiter.release(permit)).await, Ok(Ok(_))) {
            debug!("failed to release a place; it is free when its lease ends");
        }
    }
}
