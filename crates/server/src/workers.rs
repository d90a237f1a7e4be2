//! Threads that connections live on: a runtime each, so that what belongs to one connection
//! stays on one core, and answers that are ready together leave together.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use tokio::{
    runtime::{Builder, EnterGuard, Handle},
    sync::oneshot,
};

/// Threads that connections live on.
pub(crate) struct Workers {
    workers: Vec<Worker>,
    next: AtomicUsize,
}

struct Worker {
    handle: Handle,
    /// Gone with the workers, which tells the thread to end.
    _stop: oneshot::Sender<()>,
}

impl Workers {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let workers = (0..count.max(1)).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Self { workers, next: AtomicUsize::new(0) })
    }

    /// Until the guard is gone, what is spawned lives on the first of them: what talks to the
    /// store is then woken on a thread that answers, and not on one more.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.workers[0].handle.enter()
    }

    /// The one whose turn it is.
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
            // Nothing is ever sent: it ends when the sender is gone.
            let _ = runtime.block_on(stopped);
        };
        thread::Builder::new().name(format!("worker-{number}")).spawn(run)?;
        Ok(Self { handle, _stop: stop })
    }
}
