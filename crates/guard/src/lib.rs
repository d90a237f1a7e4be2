//! What a Rust service embeds to protect itself: limits on HTTP, gRPC, WebSocket and peers.
//!
//! | module | what it owns |
//! |---|---|
//! | [`identity`] | who the client of a request is, and by which text it is counted |
//! | [`tower`] | HTTP and gRPC: middleware, its classes of requests, its answers |
//! | [`websocket`] | WebSocket: connections and messages |
//! | [`peer`] | messages of peers, which are dropped without an answer |
//! | [`in_flight`] | how much is open at once |
//! | [`escalation`] | those who are denied again and again wait longer |
//! | [`allowance`], [`subject`], [`name`] | values that cannot be constructed wrong |
//! | [`denied`], [`observer`] | who has to wait and why, and who is told |
//! | [`backend`] | where it is counted: in this process, or in a store that several share |
//! | [`drain`] | refusals that come before a request's body was read |

//!
//! # Ten lines
//!
//! An axum service whose clients have 120 requests a minute each, and 20 to prove who they are:
//!
//! ```
//! use axum::{Router, routing::get};
//! use headgate_guard::{Allowance, Class, Guard, Policy, Routes};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::new([
//!     Class::new("auth")?.by_address(Allowance::per_minute(20)?),
//!     Class::new("public")?.by_address(Allowance::per_minute(120)?),
//! ])?;
//! let routes = Routes::all("public").prefix("/v1/auth", "auth");
//! let guard = Guard::builder(policy, routes).build()?;
//!
//! let app: Router = Router::new().route("/", get(async || "hello")).layer(guard.layer());
//! // Served with the address of each client:
//! let service = app.into_make_service_with_connect_info::<std::net::SocketAddr>();
//! # drop(service);
//! # Ok(())
//! # }
//! ```
//!
//! Whoever is over a limit gets a 429 that says when to come back, before anything else is done
//! for them. The guide `docs/guides/protect-an-axum-service.md` goes on from here.

pub mod allowance;
pub mod backend;
pub mod denied;
pub mod drain;
mod error;
pub mod escalation;
pub mod identity;
pub mod in_flight;
mod judge;
pub mod name;
pub mod observer;
pub mod peer;
pub mod subject;
pub mod tower;
pub mod websocket;

pub use allowance::Allowance;
pub use backend::Backend;
pub use denied::{Denied, Reason};
pub use drain::{DrainLayer, Held, HeldBody, Persistence, UnreadBody};
pub use error::GuardError;
pub use escalation::{Escalation, EscalationError, Penalties};
pub use identity::{
    AddressKey, Cidr, CidrError, ForwardedBy, ForwardedByError, Ipv6Prefix, Ipv6PrefixError,
    TrustedProxies,
};
pub use in_flight::{Busy, InFlight, InFlightLimits, Permit};
pub use name::NameError;
pub use observer::{Observer, Rejections, Surface};
pub use peer::{PeerGuard, PeerId, PeerLimits};
pub use subject::Subject;
pub use tower::{
    Class, Custom, Denial, Grpc, Guard, GuardBuilder, GuardLayer, GuardService, InFlightBody,
    InFlightFuture, InFlightLayer, InFlightService, PeerAddress, Policy, PolicyError, Render,
    RequestHead, ResponseFuture, Routes, Standard, UnknownPeers,
};
pub use websocket::{
    MessageKind, MessageLimits, WebSocketConnection, WebSocketGuard, WebSocketLimits,
};
