//! The `envoy` section of the configuration.

mod xds;

use std::{path::PathBuf, time::Duration};

use headgate::{FailMode, LeasePolicy};
use headgate_config::{Bounded, Print, Printed, Problem, print_sections};
use headgate_resilience::FailModeName;
use serde::Deserialize;

pub use self::xds::{NodeId, XdsConfig, XdsUrl};
use crate::Settings;

/// The `envoy` section: the rate limit service for Envoy.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct EnvoyConfig {
    /// `envoy.enabled`: serves `ShouldRateLimit` on the gRPC port.
    pub enabled: bool,
    /// `envoy.auth`: authentication of Envoy; required if other machines can connect.
    pub auth: Option<EnvoyAuth>,
    /// `envoy.config_dir`: directory with the `*.yaml` files of the domains.
    pub config_dir: Option<PathBuf>,
    /// `envoy.config_file`: a single such file instead of a directory.
    pub config_file: Option<PathBuf>,
    /// `envoy.reload_interval_seconds`: interval of reloading the files.
    pub reload_interval_seconds: Bounded<1, 3600>,
    /// `envoy.xds`: management server that sends the domains, instead of files.
    pub xds: XdsConfig,
    /// `envoy.rules`: rules apply to descriptors too, whose entries are attributes.
    pub rules: bool,
    /// `envoy.denied_consumes`: units that a denied request takes.
    pub denied_consumes: DeniedConsumes,
    /// `envoy.shadow_mode`: admits every request and only counts denials.
    pub shadow_mode: bool,
    /// `envoy.quota_mode`: denies a request only if every limit that it matches denies it.
    pub quota_mode: bool,
    /// `envoy.fail_mode`: fail mode while the store is down; default: `ratelimit.fail_open`.
    pub fail_mode: Option<FailModeName>,
    /// `envoy.response_headers`: headers that are added to responses to clients.
    pub response_headers: ResponseHeaders,
    /// `envoy.dynamic_metadata`: adds metadata to responses to Envoy.
    pub dynamic_metadata: bool,
}

/// Authentication of Envoy.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EnvoyAuth {
    /// A token in the `authorization` metadata.
    Token,
    /// No authentication.
    Off,
}

/// Units that a denied request takes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DeniedConsumes {
    /// Nothing: either all descriptors have room, or none is charged.
    #[default]
    None,
    /// Every descriptor that has room is charged, even if others are over their limits.
    All,
}

/// Headers that are added to responses to clients.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ResponseHeaders {
    /// No headers.
    #[default]
    None,
    /// `retry-after` with a denial.
    RetryAfter,
    /// `retry-after`, `x-ratelimit-limit`, `x-ratelimit-remaining` and `x-ratelimit-reset`.
    All,
    /// `x-ratelimit-*` as limitador writes them: the windows of all limits, and no `retry-after`.
    #[serde(rename = "draft_version_03")]
    DraftVersion03,
}

// === impl EnvoyConfig ===

impl EnvoyConfig {
    pub(crate) const fn reload_interval(&self) -> Duration {
        Duration::from_secs(self.reload_interval_seconds.get())
    }

    /// Returns true if Envoy must send a token.
    pub fn requires_token(&self) -> bool {
        self.auth == Some(EnvoyAuth::Token)
    }

    /// Returns the settings of all domains, with `fail_mode` unless one is configured; `lease` is
    /// that of limits that set none.
    pub fn settings(&self, fail_mode: FailMode, lease: LeasePolicy) -> Settings {
        Settings {
            rules: self.rules,
            denied_consumes: self.denied_consumes,
            shadow_mode: self.shadow_mode,
            quota_mode: self.quota_mode,
            fail_mode: self.fail_mode.map_or(fail_mode, FailModeName::get),
            lease,
        }
    }

    /// Validates the keys together, and returns the problems. `exposed` is true if other machines
    /// can reach the gRPC port.
    pub fn validate(&self, exposed: bool) -> Vec<Problem> {
        if !self.enabled {
            return Vec::new();
        }
        let sources =
            [self.config_dir.is_some(), self.config_file.is_some(), self.xds.url.is_some()];
        let sources = match sources.into_iter().filter(|given| *given).count() {
            0 if !self.rules => Some(Problem::new(
                "envoy",
                "no configuration source: set envoy.config_dir, envoy.config_file, envoy.xds.url \
                 or envoy.rules",
            )),
            0 | 1 => None,
            _ => Some(Problem::new(
                "envoy.config_dir",
                "only one of envoy.config_dir, envoy.config_file and envoy.xds.url can be set",
            )),
        };
        let auth = (exposed && self.auth.is_none()).then(|| {
            Problem::new(
                "envoy.auth",
                "other machines can reach the gRPC port: set token to require a token in Envoy's \
                 authorization metadata, or off to answer without one",
            )
        });
        sources.into_iter().chain(auth).chain(self.xds.validate()).collect()
    }
}

impl Default for EnvoyConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            auth: None,
            config_dir: None,
            config_file: None,
            reload_interval_seconds: Bounded::of::<2>(),
            xds: XdsConfig::default(),
            rules: false,
            denied_consumes: DeniedConsumes::default(),
            shadow_mode: false,
            quota_mode: false,
            fail_mode: None,
            response_headers: ResponseHeaders::default(),
            dynamic_metadata: false,
        }
    }
}

// === impl Print ===

print_sections! {
    EnvoyConfig {
        enabled, auth, config_dir, config_file, reload_interval_seconds, xds, rules,
        denied_consumes,
        shadow_mode, quota_mode, fail_mode, response_headers, dynamic_metadata,
    }
}

impl Print for EnvoyAuth {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::Token => "token",
            Self::Off => "off",
        })
    }
}

impl Print for DeniedConsumes {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::None => "none",
            Self::All => "all",
        })
    }
}

impl Print for ResponseHeaders {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::None => "none",
            Self::RetryAfter => "retry_after",
            Self::All => "all",
            Self::DraftVersion03 => "draft_version_03",
        })
    }
}
