use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    thread,
    time::Duration,
};

use headgate_auth::{AuthConfig, AuthMode};
use headgate_config::{Bounded, Print, Printed, Problem, quoted};
use headgate_guard::{Cidr, ForwardedBy, Ipv6Prefix, TrustedProxies};
use headgate_serve::{Bounds, Timeouts};
use serde::Deserialize;

/// Where the server listens, and how patient it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ServerConfig {
    /// `server.host`: the address to listen on.
    pub host: Host,
    /// `server.port`: 0 takes any that is free.
    pub port: Bounded<0, 65_535>,
    /// `server.grpc_port`: where gRPC is; 0 takes any that is free.
    pub grpc_port: Bounded<0, 65_535>,
    /// `server.data_dir`: the folder of what must survive a restart when there is no other place for it.
    pub data_dir: PathBuf,
    /// `server.workers`: how many threads answer; 0 takes as many as there are cores.
    pub workers: Bounded<0, 1024>,
    /// `server.trusted_proxies`: whose word about their clients' addresses is believed.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// `server.forwarded_by`: in which header these proxies say it.
    pub forwarded_by: ForwardedByName,
    /// `server.ipv6_prefix_length`: how many bits of an IPv6 address make a client.
    pub ipv6_prefix_length: Bounded<48, 64>,
    /// `server.request_timeout_seconds`: how long a request may take, its body included.
    pub request_timeout_seconds: Bounded<1, 3600>,
    /// `server.idle_timeout_seconds`: how long a connection may go without a request.
    pub idle_timeout_seconds: Bounded<1, 3600>,
    /// `server.max_connections`: maximum number of connections, on both ports together.
    pub max_connections: Bounded<1, 1_000_000>,
    /// `server.max_buffered_bytes`: maximum number of bytes held for clients that are slow.
    pub max_buffered_bytes: Bounded<1_048_576, 1_099_511_627_776>,
    /// `server.shutdown_delay_seconds`: how long everything is served after a signal to stop.
    pub shutdown_delay_seconds: Bounded<0, 3600>,
    /// `server.shutdown_grace_seconds`: how long idle connections are still answered after that.
    pub shutdown_grace_seconds: Bounded<0, 3600>,
    /// `server.shutdown_timeout_seconds`: how long requests in flight may take after that.
    pub shutdown_timeout_seconds: Bounded<0, 3600>,
}

/// An address to listen on.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Host(IpAddr);

/// An address or a range of addresses.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct TrustedProxy(Cidr);

/// A header in which proxies name their clients.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedByName {
    /// `X-Forwarded-For`, else `Forwarded`, else `X-Real-IP`.
    #[default]
    FirstPresent,
    /// `X-Forwarded-For` alone.
    XForwardedFor,
    /// `Forwarded` alone.
    Forwarded,
    /// `X-Real-IP` alone.
    XRealIp,
}

// === impl ServerConfig ===

impl ServerConfig {
    /// Where to listen for gRPC.
    pub fn grpc_address(&self) -> SocketAddr {
        SocketAddr::new(self.host.0, self.grpc_port.get() as u16)
    }

    /// Where to listen.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host.0, self.port.get() as u16)
    }

    /// How many threads answer.
    pub(crate) fn workers(&self) -> usize {
        match self.workers.get() as usize {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        }
    }

    /// Whose word about their clients is believed.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        let proxies: TrustedProxies = self.trusted_proxies.iter().map(|proxy| proxy.0).collect();
        proxies.forwarded_by(self.forwarded_by.get())
    }

    /// How many bits of an IPv6 address make a client.
    pub(crate) fn ipv6_prefix(&self) -> Ipv6Prefix {
        // The bounds are the same.
        Ipv6Prefix::new(self.ipv6_prefix_length.get() as u8).unwrap_or_default()
    }

    pub(crate) const fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds.get())
    }

    /// How long connections are waited for.
    pub(crate) const fn timeouts(&self) -> Timeouts {
        Timeouts {
            idle: Duration::from_secs(self.idle_timeout_seconds.get()),
            grace: Duration::from_secs(self.shutdown_grace_seconds.get()),
            drain: Duration::from_secs(self.shutdown_timeout_seconds.get()),
        }
    }

    /// The bounds of all connections together.
    pub(crate) const fn bounds(&self) -> Bounds {
        Bounds {
            max_connections: self.max_connections.get() as usize,
            max_buffered_bytes: self.max_buffered_bytes.get() as usize,
        }
    }

    pub(crate) const fn shutdown_delay(&self) -> Duration {
        Duration::from_secs(self.shutdown_delay_seconds.get())
    }

    /// Other machines are let in only by somebody who wrote that down.
    pub(super) fn exposed_without(&self, auth: &AuthConfig) -> Option<Problem> {
        let decided = auth.mode == Some(AuthMode::Off) || auth.authenticates();
        (!self.host.0.is_loopback() && !decided).then(|| {
            let message = format!(
                "{} can be reached from other machines, and nothing authenticates them: \
                 set auth.jwks_url or auth.tokens, listen on 127.0.0.1, or write auth.mode: off to \
                 serve everybody",
                self.host.0
            );
            Problem::new("server.host", message)
        })
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            host: Host(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            port: Bounded::of::<8080>(),
            grpc_port: Bounded::of::<50_051>(),
            data_dir: PathBuf::from("data"),
            workers: Bounded::of::<0>(),
            trusted_proxies: Vec::new(),
            forwarded_by: ForwardedByName::default(),
            ipv6_prefix_length: Bounded::of::<64>(),
            request_timeout_seconds: Bounded::of::<30>(),
            idle_timeout_seconds: Bounded::of::<75>(),
            max_connections: Bounded::of::<10_000>(),
            max_buffered_bytes: Bounded::of::<{ 64 * 1024 * 1024 }>(),
            shutdown_delay_seconds: Bounded::of::<0>(),
            shutdown_grace_seconds: Bounded::of::<1>(),
            shutdown_timeout_seconds: Bounded::of::<10>(),
        }
    }
}

// === impl Host ===

impl TryFrom<String> for Host {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "localhost" {
            return Ok(Self(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        }
        text.parse().map(Self).map_err(|_| {
            format!(
                "expected an IP address such as 127.0.0.1, 0.0.0.0 or ::1, got {}",
                quoted(&text)
            )
        })
    }
}

// === impl TrustedProxy ===

impl TrustedProxy {
    /// The range.
    pub const fn get(&self) -> &Cidr {
        &self.0
    }
}

impl TryFrom<String> for TrustedProxy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self).map_err(|error: headgate_guard::CidrError| error.to_string())
    }
}

// === impl ForwardedByName ===

impl ForwardedByName {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::FirstPresent => "first_present",
            Self::XForwardedFor => "x_forwarded_for",
            Self::Forwarded => "forwarded",
            Self::XRealIp => "x_real_ip",
        }
    }

    const fn get(self) -> ForwardedBy {
        match self {
            Self::FirstPresent => ForwardedBy::FirstPresent,
            Self::XForwardedFor => ForwardedBy::XForwardedFor,
            Self::Forwarded => ForwardedBy::Forwarded,
            Self::XRealIp => ForwardedBy::XRealIp,
        }
    }
}

// === impl Print ===

impl Print for ServerConfig {
    fn print(&self) -> Printed {
        let Self {
            host: _,
            port,
            grpc_port,
            data_dir,
            workers,
            trusted_proxies,
            forwarded_by,
            ipv6_prefix_length,
            request_timeout_seconds,
            idle_timeout_seconds,
            max_connections,
            max_buffered_bytes,
            shutdown_delay_seconds,
            shutdown_grace_seconds,
            shutdown_timeout_seconds,
        } = self;
        Printed::section([
            ("host", self.address().ip().to_string().print()),
            ("port", port.print()),
            ("grpc_port", grpc_port.print()),
            ("data_dir", data_dir.print()),
            ("workers", workers.print()),
            ("trusted_proxies", trusted_proxies.print()),
            ("forwarded_by", forwarded_by.print()),
            ("ipv6_prefix_length", ipv6_prefix_length.print()),
            ("request_timeout_seconds", request_timeout_seconds.print()),
            ("idle_timeout_seconds", idle_timeout_seconds.print()),
            ("max_connections", max_connections.print()),
            ("max_buffered_bytes", max_buffered_bytes.print()),
            ("shutdown_delay_seconds", shutdown_delay_seconds.print()),
            ("shutdown_grace_seconds", shutdown_grace_seconds.print()),
            ("shutdown_timeout_seconds", shutdown_timeout_seconds.print()),
        ])
    }
}

impl Print for TrustedProxy {
    fn print(&self) -> Printed {
        Printed::scalar(self.get().to_string())
    }
}

impl Print for ForwardedByName {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}
