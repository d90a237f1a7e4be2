//! Keeps the places of a guard's requests.
//!
//! | module | contents |
//! |---|---|
//! | `table` | [`Table`]: the places, and what has to be done next |
//! | `task` | the task that renews and releases them, while there are any |

mod table;
mod task;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use headgate::{BatchLimiter, ReserveError};
use tokio::{runtime::Handle, sync::Notify, time::Instant};
use tracing::debug;

use self::{
    table::{Job, Table},
    task::Running,
};
use super::{
    Places,
    held::{Acquiring, Acquisition, HeldPlace, PlaceHandle},
};
use crate::{Backend, Reason, backend::UNKNOWN_WAIT, decider::Rejection};

/// Takes the places of a guard's requests, renews their leases while the requests are in flight,
/// and releases them afterwards, in one task that runs while there are any.
pub(crate) struct Keeper {
    limiter: BatchLimiter,
    backend: Backend,
    table: Mutex<Table>,
    /// Wakes the task.
    changed: Notify,
    /// Notified when the task has ended.
    idle: Notify,
}

/// A lease is renewed after this part of it, so that two more attempts are left.
const RENEWALS_PER_LEASE: u32 = 3;

impl Keeper {
    pub(in crate::tower) fn new(backend: &Backend) -> Self {
        Self {
            limiter: BatchLimiter::new(backend.store()),
            backend: backend.clone(),
            table: Mutex::default(),
            changed: Notify::new(),
            idle: Notify::new(),
        }
    }

    pub(super) const fn limiter(&self) -> &BatchLimiter {
        &self.limiter
    }

    pub(super) const fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Takes a place for a request; `None` if it needs none, or is admitted because the store
    /// failed.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        places: &Arc<Places>,
        address: IpAddr,
    ) -> Result<Option<PlaceHandle>, Rejection> {
        let sent = Instant::now();
        let call = Acquisition::new(self, places, address);
        match Acquiring::new(self, call).await {
            Ok(permit) => Ok(permit.map(|permit| {
                let (places, ends) = (Arc::clone(places), sent + places.lease());
                self.hold(HeldPlace { places, address, permit, ends, is_lost: false })
            })),
            Err(ReserveError::Denied(decision)) => {
                Err(Rejection::new(places.reason(&decision), UNKNOWN_WAIT))
            }
            Err(error) => {
                debug!(%error, "failed to take a place for a request");
                if self.backend.admits_without_store() {
                    return Ok(None);
                }
                Err(Rejection::new(Reason::Global, UNKNOWN_WAIT))
            }
        }
    }

    fn hold(self: &Arc<Self>, place: HeldPlace) -> PlaceHandle {
        let due = Instant::now() + place.places.lease() / RENEWALS_PER_LEASE;
        let id = self.change(|table| table.insert(place, due));
        PlaceHandle::new(Arc::clone(self), id)
    }

    /// Releases the place of a request that has ended. Does not wait.
    pub(super) fn end(self: &Arc<Self>, id: u64) {
        self.change(|table| table.end(id));
    }

    /// Completes a call that takes a place for a request that is gone, and releases the place.
    pub(super) fn complete(self: &Arc<Self>, call: Acquisition) {
        self.change(|table| table.push(Job::Complete(call)));
    }

    /// Releases all places, and waits until that is done.
    pub(in crate::tower) async fn release_all(self: &Arc<Self>) {
        self.change(Table::end_all);
        loop {
            let idle = self.idle.notified();
            if !self.table().is_running {
                return;
            }
            idle.await;
        }
    }

    /// Changes the table, and has the task look at it.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table();
        let result = change(&mut table);
        let was_running = std::mem::replace(&mut table.is_running, true);
        drop(table);
        if was_running {
            self.changed.notify_one();
        } else {
            self.start();
        }
        result
    }

    fn start(self: &Arc<Self>) {
        let running = Running::new(Arc::clone(self));
        // Without a runtime, the leases end by themselves.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(running.run());
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
