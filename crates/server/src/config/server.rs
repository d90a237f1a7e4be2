use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    thread,
    time::Duration,
};

use headgate::SystemClock;
use headgate_auth::{AuthConfig, AuthMode};
use headgate_config::{Bounded, Print, Printed, Problem, quoted};
use headgate_guard::{Cidr, ForwardedBy, Ipv6Prefix, TrustedProxies};
use headgate_serve::{Bounds, Timeouts};
use headgate_tls::{LoadedTls, TlsConfig};
use serde::Deserialize;

/// Addresses, timeouts and other bounds of the listeners.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ServerConfig {
    /// `server.host`: the address to listen on.
    pub host: Host,
    /// `server.port`: port of HTTP; 0 picks a free one.
    pub port: Bounded<0, 65_535>,
    /// `server.grpc_port`: port of gRPC; 0 picks a free one.
    pub grpc_port: Bounded<0, 65_535>,
    /// `server.reuse_port`: lets another process listen on the same ports, to take over.
    pub reuse_port: bool,
    /// `server.unix_socket`: path of a Unix domain socket for HTTP, besides the port.
    pub unix_socket: Option<PathBuf>,
    /// `server.grpc_unix_socket`: path of a Unix domain socket for gRPC, besides the port.
    pub grpc_unix_socket: Option<PathBuf>,
    /// `server.unix_socket_mode`: permissions of both sockets.
    pub unix_socket_mode: SocketMode,
    /// `server.tls`: TLS of both ports.
    pub tls: TlsConfig,
    /// `server.grpc_tls`: TLS of the gRPC port, instead of `server.tls`.
    pub grpc_tls: Option<TlsConfig>,
    /// `server.data_dir`: folder of the SQLite file and the generated admin token.
    pub data_dir: PathBuf,
    /// `server.workers`: number of worker threads; 0 means one per core.
    pub workers: Bounded<0, 1024>,
    /// `server.trusted_proxies`: proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<TrustedProxy>,
    /// `server.forwarded_by`: header in which these proxies send the client's address.
    pub forwarded_by: ForwardedByName,
    /// `server.ipv6_prefix_length`: leading bits of an IPv6 address that identify a client.
    pub ipv6_prefix_length: Bounded<48, 64>,
    /// `server.request_timeout_seconds`: timeout of a request, including its body.
    pub request_timeout_seconds: Bounded<1, 3600>,
    /// `server.idle_timeout_seconds`: timeout of a connection without requests.
    pub idle_timeout_seconds: Bounded<1, 3600>,
    /// `server.max_connections`: maximum number of connections, on both ports together.
    pub max_connections: Bounded<1, 1_000_000>,
    /// `server.max_buffered_bytes`: maximum number of bytes buffered for slow clients.
    pub max_buffered_bytes: Bounded<1_048_576, 1_099_511_627_776>,
    /// `server.shutdown_delay_seconds`: time to serve as usual after a signal to stop.
    pub shutdown_delay_seconds: Bounded<0, 3600>,
    /// `server.shutdown_grace_seconds`: time to answer on idle connections after that.
    pub shutdown_grace_seconds: Bounded<0, 3600>,
    /// `server.shutdown_timeout_seconds`: timeout of requests in flight after that.
    pub shutdown_timeout_seconds: Bounded<0, 3600>,
    /// `server.watch_config`: reloads the configuration when its files change.
    pub watch_config: bool,
}

/// An address to listen on.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Host(IpAddr);

/// Permissions of a file, in octal digits.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct SocketMode(u32);

/// An address or a range of addresses.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct TrustedProxy(Cidr);

/// Header in which proxies send the client's address.
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
    /// Returns the address of the gRPC listener.
    pub fn grpc_address(&self) -> SocketAddr {
        SocketAddr::new(self.host.0, self.grpc_port.get() as u16)
    }

    /// Returns the address of the HTTP listener.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host.0, self.port.get() as u16)
    }

    /// Returns TLS of the gRPC port.
    pub fn grpc_tls(&self) -> &TlsConfig {
        self.grpc_tls.as_ref().unwrap_or(&self.tls)
    }

    /// Returns the number of worker threads.
    pub(crate) fn workers(&self) -> usize {
        match self.workers.get() as usize {
            0 => thread::available_parallelism().map_or(1, usize::from),
            some => some,
        }
    }

    /// Returns the trusted proxies and the header that they send.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        let proxies: TrustedProxies = self.trusted_proxies.iter().map(|proxy| proxy.0).collect();
        proxies.forwarded_by(self.forwarded_by.get())
    }

    /// Returns the prefix of an IPv6 address that identifies a client.
    pub(crate) fn ipv6_prefix(&self) -> Ipv6Prefix {
        // The bounds are the same.
        Ipv6Prefix::new(self.ipv6_prefix_length.get() as u8).unwrap_or_default()
    }

    pub(crate) const fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_seconds.get())
    }

    /// Returns the timeouts of connections.
    pub(crate) const fn timeouts(&self) -> Timeouts {
        Timeouts {
            idle: Duration::from_secs(self.idle_timeout_seconds.get()),
            grace: Duration::from_secs(self.shutdown_grace_seconds.get()),
            drain: Duration::from_secs(self.shutdown_timeout_seconds.get()),
        }
    }

    /// Returns the bounds of all connections together.
    pub(crate) const fn bounds(&self) -> Bounds {
        Bounds {
            max_connections: self.max_connections.get() as usize,
            max_buffered_bytes: self.max_buffered_bytes.get() as usize,
        }
    }

    pub(crate) const fn shutdown_delay(&self) -> Duration {
        Duration::from_secs(self.shutdown_delay_seconds.get())
    }

    /// Reports certificates that cannot be used, and client certificates that no port requests.
    pub(super) fn tls_problems(&self, auth: &AuthConfig) -> Vec<Problem> {
        let mut problems = Vec::new();
        let grpc = self.grpc_tls.as_ref().map(|tls| ("server.grpc_tls", tls));
        for (section, tls) in [("server.tls", &self.tls)].into_iter().chain(grpc) {
            let mut found = tls.contradictions();
            if found.is_empty() && tls.is_enabled() {
                found.extend(LoadedTls::read(tls, &SystemClock::new()).err());
            }
            problems.extend(found.into_iter().map(|problem| problem.within(section)));
        }
        if !auth.client_certificates.is_empty() && !self.authenticates_clients() {
            let message = "requires server.tls.client_ca_file, which is not set";
            problems.push(Problem::new("auth.client_certificates", message));
        }
        problems
    }

    fn authenticates_clients(&self) -> bool {
        self.tls.authenticates() || self.grpc_tls().authenticates()
    }

    /// Reports empty paths, such as those of variables that a template left empty: an empty
    /// `data_dir` would be the folder where the server was started.
    pub(super) fn empty_paths(&self) -> impl Iterator<Item = Problem> {
        [
            ("server.data_dir", Some(&self.data_dir)),
            ("server.unix_socket", self.unix_socket.as_ref()),
            ("server.grpc_unix_socket", self.grpc_unix_socket.as_ref()),
        ]
        .into_iter()
        .filter(|(_, path)| path.is_some_and(|path| path.as_os_str().is_empty()))
        .map(|(key, _)| Problem::new(key, "expected a path; leave the key out for its default"))
    }

    /// Reports a server that other machines reach without authentication, unless `auth.mode` is
    /// `off`.
    pub(super) fn exposed_without(&self, auth: &AuthConfig) -> Option<Problem> {
        let decided = auth.mode == Some(AuthMode::Off) || auth.authenticates();
        (!self.host.0.is_loopback() && !decided).then(|| {
            let message = format!(
                "{} can be reached from other machines, and nothing authenticates them: \
                 set auth.jwks_url or auth.tokens, listen on 127.0.0.1, or set auth.mode: off to \
                 serve without authentication",
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
            reuse_port: false,
            unix_socket: None,
            grpc_unix_socket: None,
            unix_socket_mode: SocketMode(0o660),
            tls: TlsConfig::default(),
            grpc_tls: None,
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
            watch_config: false,
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

// === impl SocketMode ===

impl SocketMode {
    /// Returns the permission bits.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<String> for SocketMode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(Self).ok_or_else(|| {
            format!("expected permissions in octal digits such as 0660, got {}", quoted(&text))
        })
    }
}

// === impl TrustedProxy ===

impl TrustedProxy {
    /// Returns the range.
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
            reuse_port,
            unix_socket,
            grpc_unix_socket,
            unix_socket_mode,
            tls,
            grpc_tls: _,
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
            watch_config,
        } = self;
        Printed::section([
            ("host", self.address().ip().to_string().print()),
            ("port", port.print()),
            ("grpc_port", grpc_port.print()),
            ("reuse_port", reuse_port.print()),
            ("unix_socket", unix_socket.print()),
            ("grpc_unix_socket", grpc_unix_socket.print()),
            ("unix_socket_mode", unix_socket_mode.print()),
            ("tls", tls.print()),
            ("grpc_tls", self.grpc_tls().print()),
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
            ("watch_config", watch_config.print()),
        ])
    }
}

impl Print for SocketMode {
    fn print(&self) -> Printed {
        Printed::scalar(format!("{:04o}", self.get()))
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
