//! Parts of the server that follow the configuration: the owner of each live key.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use headgate::{Clock, Replicas};
use headgate_api::Access;
use headgate_auth::{AdminToken, Auth, AuthMode};
use headgate_config::{ConfigError, LiveDuration, Problem};
use headgate_console::{Console, ConsoleSettings};
use headgate_events::{EventMetrics, Events, NextTasks};
use headgate_grpc::{EnvoySettings, EnvoySurface};
use headgate_persistence::Database;
use headgate_quota::QuotaLedger;
use headgate_ratelimit::Catalog;
use headgate_telemetry::log::LogControl;
use headgate_tls::LoadedTls;
use tokio::task;
use tracing::{error, info};

use super::port_tls::PortTls;
use crate::{
    config::Config,
    reload::{Commit, Live, commit},
    rest::{KeyedApi, KeyedSettings},
};

/// Authentication, and those who have signed in by it.
pub(super) struct LiveAuth {
    pub(super) access: Arc<Access>,
    pub(super) console: Arc<Console>,
    pub(super) clock: Arc<dyn Clock>,
}

/// The default rule, and the failure mode and lease of rules that set none.
pub(super) struct LiveDefaults(pub(super) Arc<Catalog>);

/// Replicas that share limits while the store is down.
pub(super) struct LiveReplicas(pub(super) Replicas);

/// Receivers of events, and the scheduler.
pub(super) struct LiveEvents {
    pub(super) events: Events,
    pub(super) metrics: EventMetrics,
    pub(super) ledger: Arc<dyn QuotaLedger>,
    pub(super) database: Arc<Database>,
    /// The database's clock.
    pub(super) periods: Arc<dyn Clock>,
    pub(super) next: NextTasks,
}

/// Limits of keys, and the addresses of clients.
pub(super) struct LiveKeys(pub(super) Arc<KeyedApi>);

/// Settings and domains of Envoy's requests.
pub(super) struct LiveEnvoy(pub(super) EnvoySurface);

/// Sessions of the console, and sign-in at the issuer.
pub(super) struct LiveConsole(pub(super) Arc<Console>);

/// The level of the log.
pub(super) struct LiveLog(pub(super) LogControl);

/// Certificates of the ports, whose files are read again.
pub(super) struct LiveTls {
    tls: PortTls,
    clock: Arc<dyn Clock>,
}

/// The durations that a reload can change.
pub(super) struct Durations {
    pub(super) request_timeout: LiveDuration,
    pub(super) refresh_interval: LiveDuration,
    pub(super) reconcile_interval: LiveDuration,
    pub(super) shutdown_delay: LiveDuration,
}

/// A key that is only a duration.
struct DurationKey {
    key: [&'static str; 1],
    duration: LiveDuration,
    read: fn(&Config) -> Duration,
}

/// `server.watch_config`, which [`Reloader`](crate::reload::Reloader) reads itself.
pub(super) struct LiveWatch;

/// Reads or generates the admin token, if no authentication is configured.
pub(super) fn admin_token(config: &Config) -> io::Result<Option<AdminToken>> {
    admin_token_dir(config).map(AdminToken::open_or_create).transpose()
}

/// Returns the folder of the admin token, if no authentication is configured.
fn admin_token_dir(config: &Config) -> Option<&Path> {
    let is_needed = config.auth.mode != Some(AuthMode::Off) && !config.auth.authenticates();
    is_needed.then_some(&*config.server.data_dir)
}

/// Returns the settings of the console.
pub(super) fn console_settings(config: &Config) -> ConsoleSettings<'_> {
    let is_local = config.server.address().ip().is_loopback();
    ConsoleSettings {
        console: &config.console,
        auth: &config.auth,
        local_scheme: is_local.then(|| config.server.tls.scheme()),
        app: config.app.clone(),
    }
}

/// Returns the settings of Envoy's requests.
pub(super) fn envoy_settings(config: &Config) -> EnvoySettings {
    let envoy = &config.envoy;
    EnvoySettings {
        limits: envoy.settings(config.ratelimit.fail_mode(), config.ratelimit.lease()),
        requires_token: envoy.requires_token(),
        headers: envoy.response_headers,
        dynamic_metadata: envoy.dynamic_metadata,
    }
}

fn invalid(problem: Problem) -> ConfigError {
    ConfigError::problems(vec![problem])
}

/// Reads the files of a section on a blocking thread.
async fn blocking<T: Send + 'static>(
    section: &'static str,
    read: impl FnOnce() -> Result<T, ConfigError> + Send + 'static,
) -> Result<T, ConfigError> {
    // The task is cancelled only if the runtime shuts down.
    let stopping = |error: task::JoinError| invalid(Problem::new(section, error.to_string()));
    task::spawn_blocking(read).await.map_err(stopping)?
}

#[async_trait]
impl Live for LiveAuth {
    fn keys(&self) -> &[&'static str] {
        &["auth"]
    }

    fn files(&self, config: &Config) -> Vec<PathBuf> {
        config.auth.ca_file.iter().cloned().collect()
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (running, clock) = (Arc::clone(&self.access.auth()), Arc::clone(&self.clock));
        let new = new.clone();
        let (auth, missing) = blocking("auth", move || {
            let unreadable = |error: io::Error| invalid(Problem::new("auth", error.to_string()));
            let folder = admin_token_dir(&new);
            let admin = folder.map(AdminToken::open).transpose().map_err(unreadable)?.flatten();
            let auth = running.reconfigured(&new.auth, admin.as_ref(), clock).map_err(invalid)?;
            Ok((auth, folder.filter(|_| admin.is_none()).map(Path::to_owned)))
        })
        .await?;
        let (access, console) = (Arc::clone(&self.access), Arc::clone(&self.console));
        Ok(commit(move || {
            let auth = match missing {
                Some(folder) => with_new_admin_token(auth, &folder),
                None => auth,
            };
            let before = access.replace(auth);
            let current = access.auth();
            console.sessions.retain(|actor| current.still_accepts(actor, &before));
            access.notify_replaced();
        }))
    }
}

/// Creates the admin token. Only a commit does: a dry run or a refused reload must not.
fn with_new_admin_token(auth: Auth, folder: &Path) -> Auth {
    match AdminToken::open_or_create(folder) {
        Ok(admin) => {
            let path = admin.path().display();
            info!(%path, "created the admin token in {path}");
            auth.with_admin(&admin)
        }
        Err(error) => {
            error!(%error, "no admin token, so that no token is accepted until a restart: {error}");
            auth
        }
    }
}

#[async_trait]
impl Live for LiveDefaults {
    fn keys(&self) -> &[&'static str] {
        &[
            "ratelimit.fail_open",
            "ratelimit.default_limit",
            "ratelimit.default_window_seconds",
            "ratelimit.lease",
        ]
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let unusable = |error: &dyn std::error::Error| {
            invalid(Problem::new("ratelimit.default_limit", error.to_string()))
        };
        let defaults = new.ratelimit.defaults().map_err(|error| unusable(&error))?;
        let prepared = self.0.prepare_defaults(defaults).await;
        let prepared = prepared.map_err(|error| unusable(&error))?;
        Ok(commit(move || prepared.commit()))
    }
}

#[async_trait]
impl Live for LiveReplicas {
    fn keys(&self) -> &[&'static str] {
        &["ratelimit.replicas"]
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (replicas, new) = (self.0.clone(), new.ratelimit.replicas());
        Ok(commit(move || replicas.set(new)))
    }
}

#[async_trait]
impl Live for LiveEvents {
    fn keys(&self) -> &[&'static str] {
        &["kafka", "webhooks", "quota.reset_schedule", "quota.retention", "audit"]
    }

    fn files(&self, config: &Config) -> Vec<PathBuf> {
        config.events().files()
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let Self { events, metrics, ledger, database, periods, next } = self;
        let tasks = events.tasks(new.events(), metrics, ledger, database.clone(), periods);
        let (tasks, next) = (tasks.map_err(invalid)?, next.clone());
        Ok(commit(move || next.replace(tasks)))
    }
}

#[async_trait]
impl Live for LiveKeys {
    fn keys(&self) -> &[&'static str] {
        &[
            "rate_limiter",
            "ratelimit.lease",
            "server.trusted_proxies",
            "server.forwarded_by",
            "server.ipv6_prefix_length",
        ]
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (keyed, settings) = (Arc::clone(&self.0), KeyedSettings::new(new).map_err(invalid)?);
        Ok(commit(move || keyed.replace(settings)))
    }
}

impl LiveTls {
    /// Returns `None` if no port speaks TLS.
    pub(super) fn of(tls: &PortTls, clock: &Arc<dyn Clock>) -> Option<Self> {
        let is_used = !tls.distinct().is_empty();
        is_used.then(|| Self { tls: tls.clone(), clock: Arc::clone(clock) })
    }
}

#[async_trait]
impl Live for LiveTls {
    fn keys(&self) -> &[&'static str] {
        &[]
    }

    fn reads_files(&self) -> bool {
        true
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (tls, clock, server) = (self.tls.clone(), Arc::clone(&self.clock), new.server.clone());
        let read = blocking("server.tls", move || {
            let mut read = Vec::new();
            for (section, config, tls) in tls.sections(&server) {
                let loaded = LoadedTls::read(config, &*clock);
                read.push((tls, loaded.map_err(|problem| invalid(problem.within(section)))?));
            }
            Ok(read)
        });
        let read = read.await?;
        Ok(commit(move || read.into_iter().for_each(|(tls, loaded)| tls.install(loaded))))
    }
}

#[async_trait]
impl Live for LiveEnvoy {
    fn keys(&self) -> &[&'static str] {
        &["envoy", "ratelimit.fail_open", "ratelimit.lease"]
    }

    fn reads_files(&self) -> bool {
        true
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (control, config) = (self.0.source().clone(), new.envoy.clone());
        let source = blocking("envoy", move || control.prepare(&config)).await?;
        let (surface, settings) = (self.0.clone(), envoy_settings(new));
        Ok(commit(move || {
            surface.replace(settings);
            source.commit();
        }))
    }
}

#[async_trait]
impl Live for LiveConsole {
    fn keys(&self) -> &[&'static str] {
        &[
            "console.session_ttl_seconds",
            "console.idle_timeout_seconds",
            "console.public_url",
            "console.other_urls",
            "console.oidc",
            "auth.issuer",
            "auth.ca_file",
        ]
    }

    fn files(&self, config: &Config) -> Vec<PathBuf> {
        config.auth.ca_file.iter().cloned().collect()
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (console, prepared, new) = (Arc::clone(&self.0), Arc::clone(&self.0), new.clone());
        let prepare = move || Ok(prepared.prepare(&console_settings(&new)));
        let settings = blocking("console", prepare).await?;
        Ok(commit(move || console.apply(settings)))
    }
}

#[async_trait]
impl Live for LiveLog {
    fn keys(&self) -> &[&'static str] {
        &["observability.log.level"]
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (control, log) = (self.0.clone(), new.observability.log);
        Ok(commit(move || control.set_level(&log)))
    }
}

// === impl Durations ===

impl Durations {
    /// Reads the durations, and adds their owners to `parts`.
    pub(super) fn new(config: &Config, parts: &mut Vec<Arc<dyn Live>>) -> Self {
        let mut live = |key, read: fn(&Config) -> Duration| {
            let duration = LiveDuration::new(read(config));
            parts.push(Arc::new(DurationKey { key: [key], duration: duration.clone(), read }));
            duration
        };
        Self {
            request_timeout: live("server.request_timeout_seconds", |config| {
                config.server.request_timeout()
            }),
            refresh_interval: live("ratelimit.refresh_interval_seconds", |config| {
                config.ratelimit.refresh_interval()
            }),
            reconcile_interval: live("quota.reconcile_interval_seconds", |config| {
                config.quota.reconcile_interval()
            }),
            shutdown_delay: live("server.shutdown_delay_seconds", |config| {
                config.server.shutdown_delay()
            }),
        }
    }
}

// === impl DurationKey ===

#[async_trait]
impl Live for DurationKey {
    fn keys(&self) -> &[&'static str] {
        &self.key
    }

    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError> {
        let (duration, new) = (self.duration.clone(), (self.read)(new));
        Ok(commit(move || duration.set(new)))
    }
}

#[async_trait]
impl Live for LiveWatch {
    fn keys(&self) -> &[&'static str] {
        &["server.watch_config"]
    }

    async fn prepare(&self, _: &Config) -> Result<Commit, ConfigError> {
        Ok(commit(|| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        app::App,
        config::Effect,
        reload::{Trigger, is_owned},
    };

    #[tokio::test]
    async fn every_live_key_has_an_owner() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let variables = [
            ("HEADGATE__SERVER__DATA_DIR", path),
            ("HEADGATE__ENVOY__ENABLED", "true"),
            ("HEADGATE__ENVOY__CONFIG_DIR", path),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Config::load(None, variables).unwrap();
        let app = Box::pin(App::build(&config)).await.unwrap();
        let owned = app.reloader().owned_keys();
        // The log belongs to the process, not to the app.
        let of_the_process = ["observability.log.level"];
        for key in config.printed().keys() {
            let is_live = Effect::of(&key) == Effect::Live;
            let has_owner = is_owned(&owned, &key) || is_owned(&of_the_process, &key);
            assert!(has_owner || !is_live, "{key} has no owner");
        }
        let reloaded = app.reloader().reload(Trigger::Signal).await.unwrap();
        assert!(reloaded.applied.is_empty() && reloaded.restart_required.is_empty());
    }
}
