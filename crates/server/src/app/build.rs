//! Building the server from its configuration, from the inside out: stores and database, use cases,
//! surfaces.

use std::sync::{Arc, atomic::AtomicBool};

use headgate::{Clock, Key, SystemClock};
use headgate_api::{
    Access, Operations,
    quotas::{QuotaMetrics, QuotaServices, QuotaSettings, QuotaTasks},
    rate_limits::{
        CheckMetrics, KeyMetrics, MeteredChecks, MeteredKeys, RuleAdmin, RulesCollector,
    },
};
use headgate_auth::Auth;
use headgate_console::{Console, Sampler};
use headgate_envoy::{Configurator, EnvoyLimits, EnvoyMetrics};
use headgate_events::{EventMetrics, EventSupervisor, Events};
use headgate_grpc::{self as grpc, CallMetrics, EnvoySurface, Grpc};
use headgate_persistence::{Database, QuotaDatabase};
use headgate_quota::QuotaLedger;
use headgate_ratelimit::{
    Catalog,
    usecase::{
        CheckRateLimit, Explain, GetUsage, LimitKeys, ManageOverrides, ManageRules, ResetLimit,
    },
};
use headgate_serve::Connections;
use headgate_stores::{StoreSettings, Stores};
use headgate_telemetry::{
    log::{AccessLog, LogControl},
    metrics::{Metrics, MetricsExporter, Runtimes, Totals},
    trace::Tracer,
};
use tokio::runtime::Handle;

use super::{
    AdminToken, App, BuildError, Tasks,
    connection_metrics::ConnectionsCollector,
    live::{
        Durations, LiveAuth, LiveConsole, LiveDefaults, LiveEnvoy, LiveEvents, LiveKeys, LiveLog,
        LiveReplicas, LiveTls, LiveWatch, admin_token, console_settings, envoy_settings,
    },
    metrics_export::MetricsExport,
    port_tls::PortTls,
    query_metrics::Queries,
    tls_metrics::TlsCollector,
};
use crate::{
    config::Config,
    refresher::Refresher,
    reload::{Live, Load, ReloadMetrics, Reloader},
    rest::{self, KeyedApi, RequestMetrics, Surface},
    workers::Workers,
};

/// Stores, database and observability, which everything else is built on.
struct Foundation {
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    tracer: Option<Tracer>,
    stores: Stores,
    catalog: Arc<Catalog>,
    database: Arc<Database>,
}

/// Quotas, and the events that come of them.
struct QuotaParts {
    services: Arc<QuotaServices>,
    tasks: QuotaTasks,
    events: Events,
    event_tasks: EventSupervisor,
    live_events: LiveEvents,
}

/// The service for Envoy, if it is enabled.
struct EnvoyParts {
    surface: Option<EnvoySurface>,
    configurator: Option<Configurator>,
    metrics: EnvoyMetrics,
}

/// The use cases of both surfaces.
struct UseCases {
    checks: Arc<MeteredChecks>,
    keyed: Arc<KeyedApi>,
    rules: Arc<RuleAdmin>,
    access: Arc<Access>,
    console: Arc<Console>,
}

impl App {
    /// Builds the server that `config` describes, with the rules that the database has. A database
    /// or store that does not answer yet is retried while requests are served. It must be called
    /// within a tokio runtime.
    ///
    /// A reload finds nothing changed; see [`build_reloadable`](Self::build_reloadable).
    pub async fn build(config: &Config) -> Result<Self, BuildError> {
        let same = config.clone();
        Self::build_reloadable(config, Arc::new(move || Ok(same.clone())), None).await
    }

    /// Builds the server as [`build`](Self::build) does. A reload reads its configuration with
    /// `load`, and sets the level of `log`.
    pub async fn build_reloadable(
        config: &Config,
        load: Arc<Load>,
        log: Option<LogControl>,
    ) -> Result<Self, BuildError> {
        let mut parts: Vec<Arc<dyn Live>> = vec![Arc::new(LiveWatch)];
        let dropped_lines = log.as_ref().map(|log| log.dropped_lines().clone());
        parts.extend(log.map(|log| Arc::new(LiveLog(log)) as _));
        let durations = Durations::new(config, &mut parts);
        let workers = Workers::start(config.server.workers()).map_err(BuildError::Workers)?;
        let base = Foundation::open(config, &workers)?;
        if let Some(dropped_lines) = dropped_lines {
            base.metrics.registry().register(Box::new(dropped_lines))?;
        }
        let connections = Connections::new(config.server.bounds().within_open_files());
        let collector = ConnectionsCollector::new(Arc::clone(&connections))?;
        base.metrics.registry().register(Box::new(collector))?;
        base.metrics.watch(vec![
            Runtimes { name: "connections", handles: workers.handles() },
            Runtimes { name: "background", handles: vec![Handle::current()] },
        ])?;
        let tls = PortTls::open(&config.server, &base.clock)?;
        base.metrics.registry().register(Box::new(TlsCollector::new(tls.distinct())?))?;
        let quotas = QuotaParts::new(config, &base, &durations)?;
        let envoy = EnvoyParts::new(config, &base)?;
        let admin = admin_token(config).map_err(BuildError::AdminToken)?;
        let use_cases = UseCases::new(config, &base, admin.as_ref())?;
        let mut refresher = Refresher::new(
            Arc::clone(&base.catalog),
            Arc::clone(&quotas.services.catalog),
            Arc::clone(&base.database),
            Arc::clone(&quotas.services.clock),
            durations.refresh_interval.clone(),
        );
        refresher.refresh().await;
        let sampler = use_cases.sampler(&base, &envoy);
        let grpc =
            grpc_surface((config, &durations), &base, &use_cases, &quotas, envoy.surface.clone())?;
        let (tracer, around) = (base.tracer.clone(), base.around_rest(config, &durations)?);
        let leases = base.stores.leases.clone();
        parts.extend(use_cases.live(&base));
        parts.extend(base.live());
        parts.extend(envoy.surface.clone().map(|surface| Arc::new(LiveEnvoy(surface)) as _));
        parts.push(Arc::new(quotas.live_events));
        parts.extend(LiveTls::of(&tls, &base.clock).map(|tls| Arc::new(tls) as _));
        let reloader = base.reloader(config, load, parts)?;
        let services = (&quotas.services, envoy.surface.as_ref());
        let operations = Arc::new(base.operations(config, services, &tls));
        let exporter = MetricsExporter::new(&config.app, &config.observability.metrics.otlp)?;
        let metrics_export =
            exporter.map(|exporter| Arc::new(MetricsExport::new(exporter, &operations)));
        let quota_use_cases = (&quotas.services, &quotas.events);
        let state = (&operations, &reloader);
        let surface = rest_surface(config, use_cases, quota_use_cases, state, around);
        Ok(Self {
            surface: Arc::new(surface),
            grpc: Arc::new(grpc),
            operations,
            reloader,
            tasks: Tasks {
                refresher,
                sampler,
                events: quotas.event_tasks,
                quotas: quotas.tasks,
                envoy: envoy.configurator,
                leases: leases.clone(),
            },
            leases,
            events: quotas.events,
            workers,
            new_admin_token: admin.filter(AdminToken::created),
            connections,
            tls,
            timeouts: config.server.timeouts(),
            shutdown_delay: durations.shutdown_delay,
            tracer,
            metrics_export,
        })
    }
}

// === impl Foundation ===

impl Foundation {
    fn open(config: &Config, workers: &Workers) -> Result<Self, BuildError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let defaults = config.ratelimit.defaults()?;
        let metrics = Metrics::new(&config.app, Arc::clone(&clock))?;
        let registry = metrics.registry();
        let tracer = Tracer::start(&config.app, &config.observability.trace)?;
        let settings = StoreSettings {
            memory: &config.memory,
            redis: &config.redis,
            replicas: config.ratelimit.replicas(),
        };
        let stores = {
            let _on_a_worker = workers.enter();
            let clock = Arc::clone(&clock);
            Stores::open(settings, &defaults.limit, clock, registry, tracer.as_ref())?
        };
        let catalog = Arc::new(Catalog::new(defaults, Arc::clone(&clock))?);
        registry.register(Box::new(RulesCollector::new(Arc::clone(&catalog))?))?;
        let target = config.database.target(&config.server.data_dir).map_err(BuildError::Config)?;
        let target = target
            .max_rules(config.ratelimit.max_rules.get())
            .max_policies(config.quota.max_policies.get());
        let spans = tracer.as_ref();
        let spans = spans.map(|tracer| tracer.database(target.system(), target.server()));
        let queries = Arc::new(Queries::new(registry, spans)?);
        let database = Arc::new(Database::open_observed(&target, queries));
        Ok(Self { clock, metrics, tracer, stores, catalog, database })
    }

    /// Creates the reloader of these parts.
    fn reloader(
        &self,
        config: &Config,
        load: Arc<Load>,
        parts: Vec<Arc<dyn Live>>,
    ) -> Result<Arc<Reloader>, BuildError> {
        let metrics = ReloadMetrics::new(self.metrics.registry())?;
        let (audit, clock) = (self.database.clone(), Arc::clone(&self.clock));
        Ok(Arc::new(Reloader::new(config.clone(), load, parts, audit, clock, metrics)))
    }

    fn live(&self) -> [Arc<dyn Live>; 2] {
        [
            Arc::new(LiveDefaults(Arc::clone(&self.catalog))),
            Arc::new(LiveReplicas(self.stores.replicas.clone())),
        ]
    }

    fn around_rest(
        &self,
        config: &Config,
        durations: &Durations,
    ) -> Result<rest::Around, BuildError> {
        Ok(rest::Around {
            clock: Arc::clone(&self.clock),
            tracer: self.tracer.clone(),
            metrics: RequestMetrics::new(&self.metrics)?,
            access_log: AccessLog::new(config.observability.log.access_sample),
            request_timeout: durations.request_timeout.clone(),
        })
    }

    /// Returns the state for health and metrics; all metrics are registered by now.
    fn operations(
        self,
        config: &Config,
        (quotas, envoy): (&Arc<QuotaServices>, Option<&EnvoySurface>),
        tls: &PortTls,
    ) -> Operations {
        Operations {
            app: config.app.clone(),
            store: self.stores.kind,
            probe: self.stores.probe,
            rules: self.catalog,
            quotas: Arc::clone(quotas),
            database: self.database,
            envoy: envoy.map(|envoy| Arc::clone(&envoy.limits)),
            tls: tls.distinct(),
            metrics: Arc::new(self.metrics),
            stopping: AtomicBool::new(false),
        }
    }
}

// === impl QuotaParts ===

impl QuotaParts {
    fn new(config: &Config, base: &Foundation, durations: &Durations) -> Result<Self, BuildError> {
        let registry = base.metrics.registry();
        let kept: QuotaDatabase = base.database.quotas_on(Arc::clone(&base.clock));
        let events = Events::new(Arc::new(kept.clone()));
        let ledger: Arc<dyn QuotaLedger> = Arc::new(kept.clone());
        // Periods and events use the database's clock.
        let periods: Arc<dyn Clock> = kept.clock().clone();
        let event_metrics = EventMetrics::new(registry, &config.kafka)?;
        let event_tasks = events
            .tasks(config.events(), &event_metrics, &ledger, base.database.clone(), &periods)
            .map_err(BuildError::Config)?;
        let event_tasks = EventSupervisor::new(&events, event_tasks);
        let live_events = LiveEvents {
            events: events.clone(),
            metrics: event_metrics,
            ledger,
            database: base.database.clone(),
            periods,
            next: event_tasks.next(),
        };
        let metrics = QuotaMetrics::new(registry)?;
        let counters = base.stores.counters.clone();
        let settings = QuotaSettings {
            key_prefix: config.redis.key_prefix.as_str(),
            queue_capacity: config.quota.queue_capacity.get() as usize,
            reconcile_interval: durations.reconcile_interval.clone(),
        };
        let (services, tasks) =
            QuotaServices::new(&settings, &kept, events.new_events().clone(), counters, metrics);
        Ok(Self { services: Arc::new(services), tasks, events, event_tasks, live_events })
    }
}

// === impl EnvoyParts ===

impl EnvoyParts {
    fn new(config: &Config, base: &Foundation) -> Result<Self, BuildError> {
        let envoy = &config.envoy;
        let metrics = EnvoyMetrics::new(base.metrics.registry())?;
        let Some((catalog, configurator)) = Configurator::start(envoy, &metrics)? else {
            return Ok(Self { surface: None, configurator: None, metrics });
        };
        let limiter = base.stores.limiter.clone();
        let rules = Arc::clone(&base.catalog);
        let limits = Arc::new(EnvoyLimits::new(catalog, rules, limiter, metrics.clone()));
        let surface = EnvoySurface::new(limits, configurator.control(), envoy_settings(config));
        Ok(Self { surface: Some(surface), configurator: Some(configurator), metrics })
    }
}

// === impl UseCases ===

impl UseCases {
    fn new(
        config: &Config,
        base: &Foundation,
        admin: Option<&AdminToken>,
    ) -> Result<Self, BuildError> {
        let auth = Auth::new(&config.auth, admin, Arc::clone(&base.clock));
        let auth = auth.map_err(BuildError::Config)?;
        let console = Arc::new(Console::new(console_settings(config), &base.clock));
        Ok(Self {
            checks: Arc::new(checks(base, &console)?),
            keyed: Arc::new(keyed(config, base, &console)?),
            rules: Arc::new(rules(base)),
            access: Arc::new(Access::new(auth, Arc::clone(&base.clock))),
            console,
        })
    }

    fn live(&self, base: &Foundation) -> [Arc<dyn Live>; 3] {
        let (access, console) = (Arc::clone(&self.access), Arc::clone(&self.console));
        let clock = Arc::clone(&base.clock);
        [
            Arc::new(LiveKeys(Arc::clone(&self.keyed))),
            Arc::new(LiveConsole(Arc::clone(&console))),
            Arc::new(LiveAuth { access, console, clock }),
        ]
    }

    /// Creates the task that samples all decisions: by rules, by keys, and for Envoy.
    fn sampler(&self, base: &Foundation, envoy: &EnvoyParts) -> Sampler {
        let (checks, keyed) = (Arc::clone(&self.checks), Arc::clone(&self.keyed));
        let envoy = envoy.metrics.clone();
        Sampler::new(Arc::clone(&self.console), base.stores.probe.clone(), move || {
            let mut totals = Totals::default();
            checks.metrics().add_to(&mut totals);
            keyed.keys.metrics().add_to(&mut totals);
            let envoy = envoy.totals();
            totals.allowed += envoy.allowed;
            totals.denied += envoy.denied;
            totals.degraded += envoy.degraded;
            totals
        })
    }
}

fn checks(base: &Foundation, console: &Console) -> Result<MeteredChecks, BuildError> {
    Ok(MeteredChecks::new(
        CheckRateLimit::new(Arc::clone(&base.catalog), base.stores.limiter.clone()),
        CheckMetrics::new(base.metrics.registry())?,
        Arc::clone(&console.top_denied),
        Arc::clone(&base.clock),
        base.tracer.is_some(),
    ))
}

fn keyed(config: &Config, base: &Foundation, console: &Console) -> Result<KeyedApi, BuildError> {
    let keys = MeteredKeys::new(
        LimitKeys::new(base.stores.limiter.clone(), base.database.clone()),
        KeyMetrics::new(base.metrics.registry(), &config.app.name)?,
        Arc::clone(&console.top_denied),
        Arc::clone(&base.clock),
        base.tracer.is_some(),
    );
    KeyedApi::new(keys, config).map_err(BuildError::Config)
}

fn rules(base: &Foundation) -> RuleAdmin {
    let (catalog, limiter) = (&base.catalog, &base.stores.limiter);
    let usage = GetUsage::new(Arc::clone(catalog), limiter.clone());
    let leases = base.stores.leases.clone();
    let held = Arc::new(move |key: Key<'_>| leases.held_of(key));
    RuleAdmin::new(
        Arc::clone(catalog),
        ManageRules::new(Arc::clone(catalog), base.database.clone()),
        ManageOverrides::new(Arc::clone(catalog), base.database.clone(), base.database.clone()),
        usage.clone(),
        Explain::new(Arc::clone(catalog), usage, held),
        ResetLimit::new(Arc::clone(catalog), limiter.clone(), base.database.clone()),
        base.database.clone(),
    )
}

fn grpc_surface(
    (config, durations): (&Config, &Durations),
    base: &Foundation,
    use_cases: &UseCases,
    quotas: &QuotaParts,
    envoy: Option<EnvoySurface>,
) -> Result<Grpc, BuildError> {
    let around = grpc::Around {
        clock: Arc::clone(&base.clock),
        tracer: base.tracer.clone(),
        metrics: CallMetrics::new(&base.metrics)?,
        access_log: AccessLog::new(config.observability.log.access_sample),
        request_timeout: durations.request_timeout.clone(),
    };
    let use_cases = grpc::UseCases {
        checks: Arc::clone(&use_cases.checks),
        rules: Arc::clone(&use_cases.rules),
        quotas: Arc::clone(&quotas.services),
        envoy,
        access: Arc::clone(&use_cases.access),
    };
    Ok(Grpc::new(use_cases, around))
}

fn rest_surface(
    config: &Config,
    use_cases: UseCases,
    (quotas, events): (&Arc<QuotaServices>, &Events),
    (operations, reloader): (&Arc<Operations>, &Arc<Reloader>),
    around: rest::Around,
) -> Surface {
    let metrics = &config.observability.metrics;
    let metrics_path = metrics.enabled.then_some(metrics.path.as_str());
    let UseCases { checks, keyed, rules, access, console } = use_cases;
    let use_cases = rest::UseCases {
        checks,
        keyed,
        rules,
        quotas: Arc::clone(quotas),
        events: events.clone(),
        documents: Arc::new(operations.database.service_configs()),
        access,
        console,
        operations: Arc::clone(operations),
        reloader: Arc::clone(reloader),
    };
    Surface::new(use_cases, around, metrics_path, config.console.enabled)
}
