use std::{path::PathBuf, time::Duration};

use headgate::FailMode;
use headgate_config::{Bounded, Print, Printed, Problem, print_sections};
use serde::Deserialize;

use super::{FailModeName, RateLimitConfig, ServerConfig, XdsConfig};

/// Whether and how Envoy's rate limit filters are answered.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct EnvoyConfig {
    /// `envoy.enabled`: whether the gRPC port answers `ShouldRateLimit`.
    pub enabled: bool,
    /// `envoy.auth`: whether Envoy must bring a token; must be written out to serve other machines.
    pub auth: Option<EnvoyAuth>,
    /// `envoy.config_dir`: the folder whose `*.yaml` files say what is limited.
    pub config_dir: Option<PathBuf>,
    /// `envoy.config_file`: one such file in its place.
    pub config_file: Option<PathBuf>,
    /// `envoy.reload_interval_seconds`: how often these are read again.
    pub reload_interval_seconds: Bounded<1, 3600>,
    /// `envoy.xds`: the management server that says what is limited, in place of files.
    pub xds: XdsConfig,
    /// `envoy.denied_consumes`: what a denied request takes.
    pub denied_consumes: DeniedConsumes,
    /// `envoy.shadow_mode`: whether everything is let through and only counted.
    pub shadow_mode: bool,
    /// `envoy.quota_mode`: whether limits deny only when all that match a request do.
    pub quota_mode: bool,
    /// `envoy.fail_mode`: who decides while the store cannot; as `ratelimit.fail_open` says unless set.
    pub fail_mode: Option<FailModeName>,
    /// `envoy.response_headers`: which headers clients are sent.
    pub response_headers: ResponseHeaders,
    /// `envoy.dynamic_metadata`: whether Envoy is told what was asked, what denied and what limits with room say.
    pub dynamic_metadata: bool,
}

/// How Envoy is authenticated.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EnvoyAuth {
    /// By a token in the `authorization` metadata.
    Token,
    /// Not at all.
    Off,
}

/// What a denied request takes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DeniedConsumes {
    /// Nothing: all descriptors have room, or none is taken from.
    #[default]
    None,
    /// Each descriptor that has room is taken from, whatever the others say.
    All,
}

/// Which headers clients are sent.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ResponseHeaders {
    /// None of ours.
    #[default]
    None,
    /// `retry-after` with a denial.
    RetryAfter,
    /// That, and `x-ratelimit-limit`, `-remaining` and `-reset`.
    All,
    /// These three as limitador writes them, with the windows of all limits, and no `retry-after`.
    #[serde(rename = "draft_version_03")]
    DraftVersion03,
}

// === impl EnvoyConfig ===

impl EnvoyConfig {
    pub(crate) const fn reload_interval(&self) -> Duration {
        Duration::from_secs(self.reload_interval_seconds.get())
    }

    /// Whether Envoy must bring a token.
    pub(crate) fn needs_token(&self) -> bool {
        self.auth == Some(EnvoyAuth::Token)
    }

    /// Who decides while the store cannot.
    pub(crate) const fn fail_mode(&self, ratelimit: &RateLimitConfig) -> FailMode {
        match self.fail_mode {
            Some(mode) => mode.get(),
            None => ratelimit.fail_mode(),
        }
    }

    /// What each key accepts by itself but the whole cannot.
    pub(super) fn contradictions(&self, server: &ServerConfig) -> Vec<Problem> {
        if !self.enabled {
            return Vec::new();
        }
        let sources =
            [self.config_dir.is_some(), self.config_file.is_some(), self.xds.url.is_some()];
        let (key, sources) = match sources.into_iter().filter(|given| *given).count() {
            0 => (
                "envoy",
                Some(
                    "no configuration source: set envoy.config_dir, envoy.config_file or envoy.xds.url",
                ),
            ),
            1 => ("envoy", None),
            _ => (
                "envoy.config_dir",
                Some(
                    "only one of envoy.config_dir, envoy.config_file and envoy.xds.url can be set",
                ),
            ),
        };
        let exposed = !server.grpc_address().ip().is_loopback() && self.auth.is_none();
        let exposed = exposed.then_some(
            "other machines can reach the gRPC port: write token to ask Envoy for a token in its \
             authorization metadata, or off to answer everybody",
        );
        let told = |key, message: Option<&str>| message.map(|message| Problem::new(key, message));
        [told(key, sources), told("envoy.auth", exposed)]
            .into_iter()
            .flatten()
            .chain(self.xds.contradictions())
            .collect()
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
            denied_consumes: DeniedConsumes::default(),
            shadow_mode: false,
            quota_mode: false,
            fail_mode: None,
            response_headers: ResponseHeaders::default(),
            dynamic_metadata: false,
        }
    }
}

// === names ===

impl EnvoyAuth {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Off => "off",
        }
    }
}

impl DeniedConsumes {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::All => "all",
        }
    }
}

impl ResponseHeaders {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::RetryAfter => "retry_after",
            Self::All => "all",
            Self::DraftVersion03 => "draft_version_03",
        }
    }
}

// === impl Print ===

print_sections! {
    EnvoyConfig {
        enabled, auth, config_dir, config_file, reload_interval_seconds, xds, denied_consumes,
        shadow_mode, quota_mode, fail_mode, response_headers, dynamic_metadata,
    }
}

impl Print for EnvoyAuth {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}

impl Print for DeniedConsumes {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}

impl Print for ResponseHeaders {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}
