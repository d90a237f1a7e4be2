//! A future that is polled only after it was woken.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// A future that is polled only after it was woken.
///
/// A connection wakes its task for every request. The other futures of the task, such as the
/// shutdown of the server, complete once: polling them every time would cost as much as a decision.
pub(super) struct WakeGuarded<F> {
    future: Pin<Box<F>>,
    flag: Arc<WakeFlag>,
    /// Waker of the future, which sets the flag.
    waker: Waker,
    /// The task that the flag wakes.
    task: Option<Waker>,
}

/// A waker that records that it was called.
struct WakeFlag {
    woken: AtomicBool,
    /// The task that polled last.
    task: Mutex<Option<Waker>>,
}

// === impl WakeGuarded ===

impl<F: Future> WakeGuarded<F> {
    pub(super) fn new(future: F) -> Self {
        // Set, so that the first poll reaches the future.
        let flag = Arc::new(WakeFlag { woken: AtomicBool::new(true), task: Mutex::default() });
        let waker = Waker::from(Arc::clone(&flag));
        Self { future: Box::pin(future), flag, waker, task: None }
    }

    /// Like [`Future::poll`]. Must not be called again after it is ready.
    #[inline]
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<F::Output> {
        let known = self.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        if known && !self.flag.woken.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.poll_inner(context)
    }

    #[cold]
    fn poll_inner(&mut self, context: &Context<'_>) -> Poll<F::Output> {
        // The task before the flag, so that a wake-up in between reaches this task.
        self.flag.task().replace(context.waker().clone());
        self.task = Some(context.waker().clone());
        self.flag.woken.store(false, Ordering::Release);
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

// === impl WakeFlag ===

impl WakeFlag {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let task = self.task().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::atomic::AtomicUsize};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn the_future_is_polled_once_and_then_after_each_wake() {
        let polls = AtomicUsize::new(0);
        let (ring, mut flag) = oneshot::channel::<()>();
        let mut wake_guarded = WakeGuarded::new(poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut flag).poll(context)
        }));

        for _ in 0..5 {
            poll_fn(|context| {
                assert!(wake_guarded.poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);

        // From another task: this one must be woken.
        tokio::spawn(async move { ring.send(()) });
        let _ = poll_fn(|context| wake_guarded.poll(context)).await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn the_task_that_polled_last_is_woken() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let counts = [(); 2].map(|()| Arc::new(Count(AtomicUsize::new(0))));
        let (ring, flag) = oneshot::channel::<()>();
        let mut wake_guarded = WakeGuarded::new(flag);
        for count in &counts {
            let waker = Waker::from(Arc::clone(count));
            assert!(wake_guarded.poll(&Context::from_waker(&waker)).is_pending());
        }
        ring.send(()).unwrap();
        let woken = counts.map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
    }
}
