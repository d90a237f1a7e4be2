//! Signals: SIGTERM, SIGINT and SIGHUP.

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

/// SIGTERM and SIGINT, which stop the process. A second one stops it without a drain.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

/// Resolves at the first signal to stop.
pub struct Shutdown(oneshot::Receiver<()>);

// === impl Stop ===

impl Stop {
    /// Starts to catch the signals.
    ///
    /// # Errors
    ///
    /// If signals cannot be caught.
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

/// Starts to catch SIGHUP, which would end the process, and calls `hung_up` for each.
///
/// # Errors
///
/// If signals cannot be caught.
pub fn on_hangup(mut hung_up: impl FnMut()) -> io::Result<impl Future<Output = ()>> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            hung_up();
        }
    })
}

/// Runs `serve` until the first signal to stop and its drain. Returns its output, or `None` if a
/// second signal cut the drain short.
pub async fn serve_until<S: Future>(
    mut stop: Stop,
    serve: impl FnOnce(Shutdown) -> S,
) -> Option<S::Output> {
    let (shutdown, received) = oneshot::channel();
    let stopped = async {
        stop.next().await;
        // The server may have ended already.
        let _ = shutdown.send(());
        stop.next().await;
    };
    tokio::select! {
        end = serve(Shutdown(received)) => Some(end),
        () = stopped => {
            warn!("received a second signal: stopping with requests in flight");
            None
        }
    }
}

// === impl Shutdown ===

impl Future for Shutdown {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // A dropped sender stops the server, too.
        Pin::new(&mut self.0).poll(context).map(|_| ())
    }
}
