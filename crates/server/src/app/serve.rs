//! Running the server until shutdown.

use std::{future::Future, sync::Arc, time::Duration};

use headgate_persistence::Database;
use headgate_serve::{Drain, Listener, Server, Tls, UnixSocket};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::{App, Listeners, PortTls, Tasks};

/// Timeout of a delivery in flight when the server stops.
const LAST_DELIVERY: Duration = Duration::from_secs(5);

/// Timeout of closing the database.
const CLOSE_DATABASE: Duration = Duration::from_secs(5);

impl App {
    /// Serves on `listeners` until `shutdown` is ready, then drains: reports that it is not ready,
    /// continues for the configured delay, and finishes the requests in flight.
    pub async fn serve(self, listeners: Listeners, shutdown: impl Future<Output = ()>) -> Drain {
        let (mut background, deliveries) = self.tasks.spawn();
        if let Some(export) = &self.metrics_export {
            background.spawn(Arc::clone(export).run());
        }
        background.spawn(Arc::clone(&self.reloader).watch());
        for tls in self.tls.distinct() {
            background.spawn(tls.watch());
        }
        let (stop, stopped) = watch::channel(());
        let surface = self.surface;
        let answer = move |request, peer| Arc::clone(&surface).answer(request, peer);
        let grpc = Arc::clone(&self.grpc);
        let call = move |request, _| {
            let grpc = Arc::clone(&grpc);
            async move { grpc.answer(request).await }
        };
        let (timeouts, workers) = (self.timeouts, &self.workers);
        let server = |listener: Listener, tls: Option<Arc<Tls>>| Server {
            listener,
            tls,
            runtime: || workers.next().clone(),
            admit: |_| Some(()),
            connections: Arc::clone(&self.connections),
            timeouts,
        };
        let PortTls { rest: rest_tls, grpc: grpc_tls } = self.tls;
        let until = || closed(stopped.clone());
        let rest = server(listeners.rest.into(), rest_tls).serve(answer.clone(), until());
        let grpc = server(listeners.grpc.into(), grpc_tls).serve(call.clone(), until());
        // Permissions of the file protect a socket: it is plain text.
        let local = |socket: UnixSocket| server(socket.into(), None);
        let rest_socket = listeners.rest_socket.map(|it| local(it).serve(answer, until()));
        let grpc_socket = listeners.grpc_socket.map(|it| local(it).serve(call, until()));
        let sockets = async { tokio::join!(drained(rest_socket), drained(grpc_socket)) };
        let stopping = async {
            shutdown.await;
            // Fail readiness first, so that load balancers use other servers while this one still
            // serves.
            self.operations.stop();
            self.grpc.drain();
            let delay = self.shutdown_delay.get();
            info!(?delay, "stopping");
            sleep(delay).await;
            self.events.shut_down();
            self.grpc.end_streams();
            drop(stop);
        };
        let (rest, grpc, sockets, ()) = tokio::join!(rest, grpc, sockets, stopping);
        let drain = rest.and(grpc).and(sockets.0).and(sockets.1);
        self.leases.give_back_all().await;
        finish(deliveries).await;
        if let Some(tracer) = &self.tracer {
            tracer.finish().await;
        }
        if let Some(export) = &self.metrics_export {
            export.finish().await;
        }
        drop(background);
        close(&self.operations.database).await;
        log(drain);
        drain
    }
}

impl Tasks {
    /// Starts the tasks: those that end with the server, and the deliveries of events, which are
    /// waited for.
    fn spawn(self) -> (JoinSet<()>, JoinSet<()>) {
        let (mut background, mut deliveries) = (JoinSet::new(), JoinSet::new());
        background.spawn(self.refresher.run());
        background.spawn(self.sampler.run());
        background.spawn(self.quotas.committer.run());
        background.spawn(self.quotas.reconciler.run());
        if let Some(configurator) = self.envoy {
            background.spawn(configurator.run());
        }
        background.spawn(self.leases.give_back_unused());
        deliveries.spawn(self.events.run());
        (background, deliveries)
    }
}

/// Serves, if there is such a listener.
async fn drained(serving: Option<impl Future<Output = Drain>>) -> Drain {
    match serving {
        Some(serving) => serving.await,
        None => Drain::Complete,
    }
}

/// Completes when the sender is dropped: nothing is ever sent.
async fn closed(mut stopped: watch::Receiver<()>) {
    let _ = stopped.changed().await;
}

async fn finish(deliveries: JoinSet<()>) {
    if timeout(LAST_DELIVERY, deliveries.join_all()).await.is_err() {
        warn!("stopped during a delivery; its event may be delivered again");
    }
}

/// Closes the connections. The last one of a SQLite file writes its log back, so that the file by
/// itself is complete.
async fn close(database: &Database) {
    if timeout(CLOSE_DATABASE, database.close()).await.is_err() {
        warn!("stopped before all connections to the database were closed");
    }
}

fn log(drain: Drain) {
    match drain {
        Drain::Complete => info!("stopped; all requests were answered"),
        Drain::CutOff(connections) => {
            warn!(connections, "drain timed out; connections were closed");
        }
    }
}
