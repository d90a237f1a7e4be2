//! Wires everything: configuration, database, store, use cases, surfaces.

use std::{
    future::Future,
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use headgate::{BatchLimiter, Clock, LimitError, SystemClock};
use headgate_auth::{Auth, AuthMode};
use headgate_config::{ConfigError, Problem};
use headgate_envoy::{Configurator, EnvoyLimits};
use headgate_persistence::Database;
use headgate_quota::QuotaLedger;
use headgate_ratelimit::{
    Catalog,
    usecase::{CheckRateLimit, Explain, GetUsage, LimitKeys, ManageRules, ResetLimit},
};
use headgate_serve::{Connections, Drain, Server, Timeouts};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::{Notify, Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use crate::{
    clients::Clients,
    config::Config,
    console::{Console, pulse},
    events::{EventTasks, Events},
    grpc::{EnvoySurface, Grpc},
    metrics::{Metrics, MetricsText},
    quotas::{QuotaServices, QuotaTasks},
    refresher::Refresher,
    rest::Surface,
    services::{Outages, Services},
    stores::{OpenError, Stores},
    telemetry::{Tracer, TracerError},
    workers::Workers,
};

pub use crate::stores::StoreKind;
pub use headgate_auth::AdminToken;

/// A server that is ready to listen.
pub struct App {
    surface: Arc<Surface>,
    services: Arc<Services>,
    grpc: Arc<Grpc>,
    refresher: Refresher,
    events: Events,
    event_tasks: EventTasks,
    quotas: QuotaTasks,
    envoy: Option<Configurator>,
    workers: Workers,
    store: StoreKind,
    new_admin_token: Option<AdminToken>,
    connections: Arc<Connections>,
    timeouts: Timeouts,
    shutdown_delay: Duration,
    tracer: Option<Tracer>,
}

/// Where a server listens.
#[derive(Debug)]
pub struct Listeners {
    /// For HTTP.
    pub rest: TcpListener,
    /// For gRPC.
    pub grpc: TcpListener,
}

/// What can be read again while the server runs.
#[derive(Clone, Debug)]
pub struct Reload(Option<Arc<Notify>>);

/// Why there is no server.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A key has a value that cannot be used.
    #[error("{0}")]
    Config(Problem),
    /// The default rule is no limit.
    #[error("ratelimit: {0}")]
    DefaultRule(#[from] LimitError),
    /// The files of Envoy's domains are invalid.
    #[error("envoy: {0}")]
    Envoy(#[from] ConfigError),
    /// The metrics cannot be told apart.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// Requests cannot be followed.
    #[error("observability.trace: {0}")]
    Tracer(#[from] TracerError),
    /// There are no threads to be had.
    #[error("cannot start the server's threads: {0}")]
    Workers(io::Error),
    /// The admin token can neither be read nor made.
    #[error("{0}")]
    AdminToken(io::Error),
}

impl From<OpenError> for BuildError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(problem) => Self::Config(problem),
            OpenError::Metrics(error) => Self::Metrics(error),
        }
    }
}

/// How long a delivery that has begun may take once the server stops.
const LAST_DELIVERY: Duration = Duration::from_secs(5);

impl App {
    /// Builds the server that `config` describes, with the rules that are there; a database or a
    /// store that is not there yet is waited for while others are served. It must be called within a
    /// tokio runtime.
    pub async fn build(config: &Config) -> Result<Self, BuildError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let defaults = config.ratelimit.defaults()?;
        let workers = Workers::start(config.server.workers()).map_err(BuildError::Workers)?;
        let stores = {
            let _on_a_worker = workers.enter();
            Stores::open(config, &defaults.limit, Arc::clone(&clock))?
        };
        let catalog = Arc::new(Catalog::new(defaults, Arc::clone(&clock))?);
        let connections = Connections::new(config.server.bounds());
        let metrics =
            Metrics::new(config, &stores, Arc::clone(&catalog), Arc::clone(&connections))?;
        let Stores { limiter, probe, kind, counters, .. } = stores;
        let target = config.database.target(&config.server.data_dir).map_err(BuildError::Config)?;
        let target = target.max_rules(config.ratelimit.max_rules.get());
        let queries = Arc::new(metrics.queries.clone());
        let database = Arc::new(Database::open_observed(&target, queries));
        let kept = database.quotas_on(Arc::clone(&clock));
        let events = Events::new(Arc::new(kept.clone()));
        let ledger: Arc<dyn QuotaLedger> = Arc::new(kept.clone());
        // Periods and events go by the database's clock.
        let periods: Arc<dyn Clock> = kept.clock().clone();
        let event_tasks =
            events.tasks(config, &metrics.events, &ledger, database.clone(), &periods);
        let event_tasks = event_tasks.map_err(BuildError::Config)?;
        let (bell, numbers) = (events.bell().clone(), metrics.quotas.clone());
        let (quotas, tasks) = QuotaServices::new(config, &kept, bell, counters, numbers);
        let (policies, measured) = (Arc::clone(&quotas.catalog), Arc::clone(&quotas.clock));
        let tracer = Tracer::start(config)?;
        let admin = admin_token(config).map_err(BuildError::AdminToken)?;
        let keyed = Arc::new(config.rate_limiter.limits().map_err(BuildError::Config)?);
        let (envoy, configurator) = envoy(config, &limiter, &metrics)?.unzip();
        let usage = GetUsage::new(Arc::clone(&catalog), limiter.clone());
        let services = Arc::new(Services {
            check: CheckRateLimit::new(Arc::clone(&catalog), limiter.clone()),
            keyed: LimitKeys::new(keyed, limiter.clone(), database.clone()),
            default_algorithm: config.rate_limiter.algorithm.get(),
            clients: Clients {
                proxies: config.server.proxies(),
                ipv6: config.server.ipv6_prefix(),
            },
            envoy,
            outages: Outages::default(),
            explain: Explain::new(Arc::clone(&catalog), usage.clone()),
            usage,
            reset: ResetLimit::new(Arc::clone(&catalog), limiter, database.clone()),
            rules: ManageRules::new(Arc::clone(&catalog), database.clone()),
            rule_lists: Semaphore::new(1),
            quotas,
            audit: database.clone(),
            database: Arc::clone(&database),
            documents: Arc::new(database.service_configs()),
            events: events.clone(),
            auth: Auth::new(&config.auth, admin.as_ref(), Arc::clone(&clock))
                .map_err(BuildError::Config)?,
            probe,
            store: kind,
            about: config.app.clone(),
            metrics,
            tracer: tracer.clone(),
            console: Console::new(config, &clock),
            clock,
            catalog: Arc::clone(&catalog),
            stopping: AtomicBool::new(false),
            metrics_text: MetricsText::default(),
        });
        let every = config.ratelimit.refresh_interval();
        let mut refresher = Refresher::new(catalog, policies, database, measured, every);
        refresher.refresh().await;
        let metrics = &config.observability.metrics;
        let metrics_path = metrics.enabled.then_some(metrics.path.as_str());
        let request_timeout = config.server.request_timeout();
        Ok(Self {
            grpc: Arc::new(Grpc::new(Arc::clone(&services), request_timeout)),
            surface: Arc::new(Surface::new(
                Arc::clone(&services),
                metrics_path,
                config.console.enabled,
                request_timeout,
            )),
            services,
            refresher,
            events,
            event_tasks,
            quotas: tasks,
            envoy: configurator,
            workers,
            store: kind,
            new_admin_token: admin.filter(AdminToken::created),
            connections,
            timeouts: config.server.timeouts(),
            shutdown_delay: config.server.shutdown_delay(),
            tracer,
        })
    }

    /// Which store decides.
    pub const fn store(&self) -> StoreKind {
        self.store
    }

    /// Reads the files of Envoy's domains, or connects to their management server, at once when it is asked to, while
    /// the server runs.
    pub fn reload(&self) -> Reload {
        Reload(self.envoy.as_ref().map(|configurator| Arc::clone(configurator.reload())))
    }

    /// The admin token, if it was made just now: nobody has seen it yet.
    pub const fn new_admin_token(&self) -> Option<&AdminToken> {
        self.new_admin_token.as_ref()
    }

    /// Answers on `listeners` until `shutdown` is ready, then drains: it says that it is not ready,
    /// goes on for the configured delay, and finishes what it has begun.
    pub async fn serve(self, listeners: Listeners, shutdown: impl Future<Output = ()>) -> Drain {
        let mut background = JoinSet::new();
        background.spawn(self.refresher.run());
        background.spawn(pulse::run(Arc::clone(&self.services)));
        let mut telling = JoinSet::new();
        self.event_tasks.spawn(&mut telling);
        background.spawn(self.quotas.committer.run());
        background.spawn(self.quotas.reconciler.run());
        if let Some(configurator) = self.envoy {
            background.spawn(configurator.run());
        }
        let (stop, stopped) = watch::channel(());
        let told = |mut stopped: watch::Receiver<()>| async move {
            // Nothing is ever sent: it ends when the sender is gone.
            let _ = stopped.changed().await;
        };
        let surface = self.surface;
        let answer = move |request, peer| Arc::clone(&surface).answer(request, peer);
        let grpc = Arc::clone(&self.grpc);
        let call = move |request, _| {
            let grpc = Arc::clone(&grpc);
            async move { grpc.answer(request).await }
        };
        let (timeouts, workers) = (self.timeouts, &self.workers);
        let server = |listener| Server {
            listener,
            runtime: || workers.next().clone(),
            admit: |_| Some(()),
            connections: Arc::clone(&self.connections),
            timeouts,
        };
        let rest = server(listeners.rest).serve(answer, told(stopped.clone()));
        let grpc = server(listeners.grpc).serve(call, told(stopped));
        let stopping = async {
            shutdown.await;
            // Balancers hear of it first, and go elsewhere while everything is still served.
            self.services.stop();
            self.grpc.drain();
            info!(delay = ?self.shutdown_delay, "stopping");
            sleep(self.shutdown_delay).await;
            self.events.stop();
            drop(stop);
        };
        let (rest, grpc, ()) = tokio::join!(rest, grpc, stopping);
        let drain = rest.and(grpc);
        if timeout(LAST_DELIVERY, telling.join_all()).await.is_err() {
            warn!("Stopped: an event was on its way, and may be delivered again");
        }
        if let Some(tracer) = &self.tracer {
            tracer.finish().await;
        }
        match drain {
            Drain::Complete => info!("Stopped: every request was answered"),
            Drain::CutOff(connections) => {
                warn!(connections, "Stopped: time ran out on {connections} connections");
            }
        }
        drain
    }
}

impl Reload {
    /// Reads it again. Whether there is anything to read.
    pub fn now(&self) -> bool {
        self.0.as_ref().inspect(|asked| asked.notify_one()).is_some()
    }
}

/// The service for Envoy, and the task that keeps its domains up to date; `None` if it is disabled.
fn envoy(
    config: &Config,
    limiter: &BatchLimiter,
    metrics: &Metrics,
) -> Result<Option<(EnvoySurface, Configurator)>, ConfigError> {
    let envoy = &config.envoy;
    let Some((catalog, configurator)) = Configurator::start(envoy, &metrics.envoy)? else {
        return Ok(None);
    };
    let settings = envoy.settings(config.ratelimit.fail_mode());
    let surface = EnvoySurface {
        limits: EnvoyLimits::new(catalog, limiter.clone(), settings, metrics.envoy.clone()),
        requires_token: envoy.requires_token(),
        headers: envoy.response_headers,
        dynamic_metadata: envoy.dynamic_metadata,
    };
    Ok(Some((surface, configurator)))
}

/// The token that opens everything, where nobody configured who may do what.
fn admin_token(config: &Config) -> io::Result<Option<AdminToken>> {
    if config.auth.mode == Some(AuthMode::Off) || config.auth.authenticates() {
        return Ok(None);
    }
    AdminToken::open_or_create(&config.server.data_dir).map(Some)
}
