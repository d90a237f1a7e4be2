//! The place that a request holds in the store.

use std::{
    future::Future,
    mem,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use headgate::{Permit, ReserveError};
use tokio::time::Instant;

use super::{Keeper, Places};

/// A place in the store, and what is needed to keep it.
pub(super) struct HeldPlace {
    pub(super) places: Arc<Places>,
    pub(super) address: IpAddr,
    pub(super) permit: Permit,
    /// A time before the end of the lease by the store's clock.
    pub(super) ends: Instant,
    /// `true` if another request may have the place.
    pub(super) is_lost: bool,
}

/// Keeps the place of a request, and has it released when dropped.
pub(super) struct PlaceHandle {
    keeper: Arc<Keeper>,
    id: u64,
}

/// A call that takes a place.
pub(super) struct Acquisition {
    call: Pin<Box<dyn Future<Output = Result<Option<Permit>, ReserveError>> + Send>>,
    pub(super) places: Arc<Places>,
}

/// A call that takes a place for a request. If the request is gone before the store has answered,
/// the keeper completes the call and releases the place.
pub(super) struct Acquiring<'a> {
    keeper: &'a Arc<Keeper>,
    call: Option<Acquisition>,
}

// === impl HeldPlace ===

impl HeldPlace {
    /// Records a lease that was taken or renewed by a call that began at `sent`.
    pub(super) fn extend(&mut self, sent: Instant) {
        self.ends = sent + self.places.lease();
        self.is_lost = false;
    }

    /// Replaces a lease that has ended.
    pub(super) fn replace(&mut self, permit: Permit, sent: Instant) -> Permit {
        self.extend(sent);
        mem::replace(&mut self.permit, permit)
    }
}

// === impl PlaceHandle ===

impl PlaceHandle {
    pub(super) const fn new(keeper: Arc<Keeper>, id: u64) -> Self {
        Self { keeper, id }
    }
}

impl Drop for PlaceHandle {
    fn drop(&mut self) {
        self.keeper.end(self.id);
    }
}

// === impl Acquisition ===

impl Acquisition {
    pub(super) fn new(keeper: &Arc<Keeper>, places: &Arc<Places>, address: IpAddr) -> Self {
        let (keeper, limits) = (Arc::clone(keeper), Arc::clone(places));
        let call = async move { limits.acquire(keeper.limiter(), keeper.backend(), address).await };
        Self { call: Box::pin(call), places: Arc::clone(places) }
    }
}

impl Future for Acquisition {
    type Output = Result<Option<Permit>, ReserveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.call.as_mut().poll(context)
    }
}

// === impl Acquiring ===

impl<'a> Acquiring<'a> {
    pub(super) const fn new(keeper: &'a Arc<Keeper>, call: Acquisition) -> Self {
        Self { keeper, call: Some(call) }
    }
}

impl Future for Acquiring<'_> {
    type Output = Result<Option<Permit>, ReserveError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(call) = &mut self.call else { return Poll::Pending };
        let answer = Pin::new(call).poll(context);
        if answer.is_ready() {
            self.call = None;
        }
        answer
    }
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.keeper.complete(call);
        }
    }
}
