#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`tower`] | HTTP and gRPC: middleware, its classes of requests, its answers |
//! | [`websocket`] | WebSocket: connections and messages |
//! | [`peer`] | messages of peers, which are dropped without an answer |
//! | [`identity`] | the client of a request, and the key it is counted by |
//! | [`in_flight`] | requests and connections open at once |
//! | [`escalation`] | longer waits for repeat offenders |
//! | [`allowance`], [`subject`], [`name`] | validated values |
//! | [`denied`], [`observer`] | denials, and callbacks about them |
//! | [`backend`] | counters of limits: in this process, or in a shared store |
//! | [`drain`] | early refusals: the rest of the request body |

pub mod allowance;
pub mod backend;
mod decider;
pub mod denied;
pub mod drain;
mod error;
pub mod escalation;
pub mod identity;
pub mod in_flight;
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
pub use in_flight::{Busy, InFlight, InFlightLimits, Permit, SharedInFlight, SharedInFlightError};
pub use name::NameError;
pub use observer::{Observer, Rejections, Surface};
pub use peer::{PeerGuard, PeerId, PeerLimits};
pub use subject::Subject;
pub use tower::{
    Class, Custom, Denial, Estimate, Grpc, Guard, GuardBuilder, GuardLayer, GuardService,
    InFlightBody, InFlightFuture, InFlightLayer, InFlightService, KeyExtractor, MissingKey, OnDrop,
    PeerAddress, Policy, PolicyError, Render, RequestHead, RequestKey, ReserveLayer,
    ReserveService, ReservedUnits, ResponseFuture, Routes, SpentEach, Standard, UnknownPeers,
};
pub use websocket::{
    MessageKind, MessageLimits, WebSocketConnection, WebSocketGuard, WebSocketLimits,
};
