//! Which keys a reload applies, and which need a restart.

use headgate_console::ConsoleConfig;
use headgate_envoy::EnvoyConfig;
use headgate_telemetry::{LogConfig, ObservabilityConfig};

use super::{Config, QuotaConfig, RateLimitConfig, ServerConfig};

/// When a changed key applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// With the next reload.
    Live,
    /// With the next restart.
    Restart,
}

/// A section with keys of both kinds.
trait Mixed {
    /// Returns the effect of a key of this section.
    fn effect(key: &str) -> Effect;

    /// Returns this section with the live keys of `new`.
    fn mixed(&self, new: &Self) -> Self;
}

/// Implements [`Mixed`] for sections. A key that is left out does not compile.
///
/// A key of `live` or `restart` may be a section whose keys are all of that kind.
macro_rules! effects {
    ($($section:ident {
        live: [$($live:ident),* $(,)?],
        restart: [$($restart:ident),* $(,)?],
        mixed: [$($name:ident: $type:ident),* $(,)?],
    })*) => {$(
        impl Mixed for $section {
            fn effect(key: &str) -> Effect {
                let (name, _rest) = key.split_once('.').unwrap_or((key, ""));
                match name {
                    $(stringify!($live) => Effect::Live,)*
                    $(stringify!($name) => <$type as Mixed>::effect(_rest),)*
                    _ => Effect::Restart,
                }
            }

            #[allow(clippy::clone_on_copy, reason = "some values are Copy, others are not")]
            fn mixed(&self, new: &Self) -> Self {
                Self {
                    $($live: new.$live.clone(),)*
                    $($restart: self.$restart.clone(),)*
                    $($name: self.$name.mixed(&new.$name),)*
                }
            }
        }
    )*};
}

effects! {
    Config {
        live: [auth, audit, rate_limiter, kafka, webhooks],
        restart: [app, database, redis, memory],
        mixed: [
            server: ServerConfig, ratelimit: RateLimitConfig, envoy: EnvoyConfig,
            quota: QuotaConfig, console: ConsoleConfig, observability: ObservabilityConfig,
        ],
    }
    ServerConfig {
        live: [
            trusted_proxies, forwarded_by, ipv6_prefix_length, request_timeout_seconds,
            shutdown_delay_seconds, watch_config,
        ],
        restart: [
            host, port, grpc_port, reuse_port, unix_socket, grpc_unix_socket, unix_socket_mode, tls, grpc_tls,
            data_dir, workers, idle_timeout_seconds, max_connections, max_buffered_bytes, shutdown_grace_seconds, shutdown_timeout_seconds,
        ],
        mixed: [],
    }
    RateLimitConfig {
        live: [
            fail_open, default_limit, default_window_seconds, lease, replicas,
            refresh_interval_seconds,
        ],
        restart: [max_rules],
        mixed: [],
    }
    EnvoyConfig {
        live: [
            auth, config_dir, config_file, reload_interval_seconds, rules, denied_consumes,
            shadow_mode, quota_mode, fail_mode, response_headers, dynamic_metadata,
        ],
        restart: [enabled, xds],
        mixed: [],
    }
    QuotaConfig {
        live: [reconcile_interval_seconds, reset_schedule, retention],
        restart: [max_policies, queue_capacity],
        mixed: [],
    }
    ConsoleConfig {
        live: [session_ttl_seconds, idle_timeout_seconds, public_url, other_urls, oidc],
        restart: [enabled],
        mixed: [],
    }
    ObservabilityConfig {
        live: [],
        restart: [trace, metrics],
        mixed: [log: LogConfig],
    }
    LogConfig {
        live: [level],
        restart: [format, access_sample],
        mixed: [],
    }
}

// === impl Effect ===

impl Effect {
    /// Returns when a change of `key`, such as `server.port`, applies.
    pub fn of(key: &str) -> Self {
        Config::effect(key)
    }
}

// === impl Config ===

impl Config {
    /// Returns this configuration with the live keys of `new`.
    pub(crate) fn with_live_keys_of(&self, new: &Self) -> Self {
        self.mixed(new)
    }
}

#[cfg(test)]
mod tests;
