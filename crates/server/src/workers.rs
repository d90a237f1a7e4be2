//! Worker threads with a runtime each, so that the tasks of a connection stay on one core, and
//! responses that are ready together are written together.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use tokio::{
    runtime::{Builder, EnterGuard, Handle},
    sync::oneshot,
};

/// The worker threads.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    next: AtomicUsize,
}

/// Tells whether the worker threads are alive.
#[derive(Clone, Debug)]
pub struct Liveness(Vec<Handle>);

struct Worker {
    handle: Handle,
    /// Dropped with the workers, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl Workers {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let workers = (0..count.max(1)).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Self { workers, next: AtomicUsize::new(0) })
    }

    /// Until the guard is dropped, tasks are spawned on the first thread: the store's tasks then
    /// run on a worker, not on an additional thread.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.workers[0].handle.enter()
    }

    /// Returns the runtimes of all threads.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.workers.iter().map(|worker| worker.handle.clone()).collect()
    }

    /// Returns a check that all workers are alive.
    pub(crate) fn liveness(&self) -> Liveness {
        Liveness(self.handles())
    }

    /// Returns the next worker, round robin.
    pub(crate) fn next(&self) -> &Handle {
        let turn = self.next.fetch_add(1, Relaxed);
        &self.workers[turn % self.workers.len()].handle
    }
}

impl Liveness {
    /// Completes when every worker thread has run a task: one that is blocked serves no requests.
    pub async fn check(&self) {
        let turns: Vec<_> = self.0.iter().map(|worker| worker.spawn(async {})).collect();
        for turn in turns {
            // An error means that the runtime has stopped, with the server.
            let _ = turn.await;
        }
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, (stop, stopped)) = (runtime.handle().clone(), oneshot::channel::<()>());
        let run = move || {
            // Nothing is ever sent: it ends when the sender is dropped.
            let _ = runtime.block_on(stopped);
        };
        thread::Builder::new().name(format!("worker-{number}")).spawn(run)?;
        Ok(Self { handle, _stop: stop })
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Duration};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_blocked_worker_is_not_alive() {
        let workers = Workers::start(2).unwrap();
        let liveness = workers.liveness();
        liveness.check().await;
        let (unblock, blocked) = mpsc::channel::<()>();
        workers.next().spawn(async move { blocked.recv() });
        assert!(timeout(Duration::from_millis(300), liveness.check()).await.is_err());
        drop(unblock);
        liveness.check().await;
    }
}
