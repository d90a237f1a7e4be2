//! What an operator tells a process.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};
use tracing::warn;

/// SIGTERM and SIGINT: the process is to stop. A second one is for those who cannot wait.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

/// Ready when a signal to stop came.
pub struct Shutdown(oneshot::Receiver<()>);

// === impl Stop ===

impl Stop {
    /// Catches these signals from here on.
    ///
    /// # Errors
    ///
    /// Signals cannot be caught here.
    pub fn catch() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Catches SIGHUP from here on, which would end the process, and calls `hung_up` for every one.
///
/// # Errors
///
/// Signals cannot be caught here.
pub fn on_hangup(mut hung_up: impl FnMut()) -> io::Result<impl Future<Output = ()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            hung_up();
        }
    })
}

/// Serves until the first signal to stop; a second one does not wait for the end of the drain.
/// What `serve` came to, if it came to its end.
pub async fn serve_until<S: Future>(
    mut stop: Stop,
    serve: impl FnOnce(Shutdown) -> S,
) -> Option<S::Output> {
    let (shutdown, told) = oneshot::channel();
    let stopped = async {
        stop.next().await;
        // A server that has ended by itself need not be told.
        let _ = shutdown.send(());
        stop.next().await;
    };
    tokio::select! {
        end = serve(Shutdown(told)) => Some(end),
        () = stopped => {
            warn!("stopped without waiting for requests in flight: a second signal came");
            None
        }
    }
}

// === impl Shutdown ===

impl Future for Shutdown {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // A sender that is gone stops the server, too.
        Pin::new(&mut self.0).poll(context).map(|_| ())
    }
}
