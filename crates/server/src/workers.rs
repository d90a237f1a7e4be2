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

    /// Returns the next worker, round robin.
    pub(crate) fn next(&self) -> &Handle {
        let turn = self.next.fetch_add(1, Relaxed);
        &self.workers[turn % self.workers.len()].handle
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
