//! What a connection's task waits for beside the connection itself.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// A future that is polled only when something woke it.
///
/// A connection wakes its task for every request. What else the task waits for, the end of the
/// server or a long silence, comes once: asking for it every time would cost as much as a decision.
pub(super) struct Beside<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    /// The bell as a waker, for the future.
    waker: Waker,
    /// Whom the bell wakes.
    task: Option<Waker>,
}

/// Remembers that it rang.
struct Bell {
    rang: AtomicBool,
    /// Whom it wakes: always the last who looked, however often it rings.
    task: Mutex<Option<Waker>>,
}

// === impl Beside ===

impl<F: Future> Beside<F> {
    pub(super) fn new(future: F) -> Self {
        // The first look is owed.
        let bell = Arc::new(Bell { rang: AtomicBool::new(true), task: Mutex::default() });
        let waker = Waker::from(Arc::clone(&bell));
        Self { future: Box::pin(future), bell, waker, task: None }
    }

    /// What [`Future::poll`] would say. After it is ready, it is not to be asked again.
    #[inline]
    pub(super) fn poll(&mut self, context: &Context<'_>) -> Poll<F::Output> {
        let known = self.task.as_ref().is_some_and(|task| task.will_wake(context.waker()));
        if known && !self.bell.rang.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.look(context)
    }

    #[cold]
    fn look(&mut self, context: &Context<'_>) -> Poll<F::Output> {
        // The task before the flag: whoever rings in between wakes the task that looks here.
        self.bell.task().replace(context.waker().clone());
        self.task = Some(context.waker().clone());
        self.bell.rang.store(false, Ordering::Release);
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

// === impl Bell ===

impl Bell {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rang.store(true, Ordering::Release);
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
    async fn it_is_polled_once_and_then_when_it_was_woken() {
        let polls = AtomicUsize::new(0);
        let (ring, mut bell) = oneshot::channel::<()>();
        let mut beside = Beside::new(poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut bell).poll(context)
        }));

        for _ in 0..5 {
            poll_fn(|context| {
                assert!(beside.poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);

        // From another task: this one must be woken.
        tokio::spawn(async move { ring.send(()) });
        let _ = poll_fn(|context| beside.poll(context)).await;
        assert_eq!(polls.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn another_task_is_woken_when_another_asks() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let counts = [(); 2].map(|()| Arc::new(Count(AtomicUsize::new(0))));
        let (ring, bell) = oneshot::channel::<()>();
        let mut beside = Beside::new(bell);
        for count in &counts {
            let waker = Waker::from(Arc::clone(count));
            assert!(beside.poll(&Context::from_waker(&waker)).is_pending());
        }
        ring.send(()).unwrap();
        let woken = counts.map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
    }
}
