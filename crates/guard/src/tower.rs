//! The guard as middleware: HTTP and gRPC, on anything that speaks `tower`.
//!
//! | module | what it owns |
//! |---|---|
//! | `class`, `policy` | [`Class`], [`Policy`]: what is allowed, as an operator may change it |
//! | `routes` | [`Routes`]: which request is of which class |
//! | `peer`, `unknown_peer` | [`PeerAddress`]: where the connection comes from, and [`UnknownPeers`] |
//! | `guard`, `builder` | [`Guard`]: the policy in force, and decisions under it |
//! | `rules` | a policy that is compiled for deciding |
//! | `layer`, `service`, `future` | [`GuardLayer`]: the middleware |
//! | `denial`, `headers` | [`Denial`]: what those are told who have to wait |
//! | `in_flight` | [`InFlightLayer`]: how many requests a client has open |

mod builder;
mod class;
mod denial;
mod future;
mod guard;
mod headers;
mod in_flight;
mod layer;
mod peer;
mod policy;
mod routes;
mod rules;
mod service;
mod unknown_peer;

pub use self::{
    builder::GuardBuilder,
    class::Class,
    denial::{Custom, Denial, Grpc, Render, Standard},
    future::ResponseFuture,
    guard::Guard,
    in_flight::{InFlightBody, InFlightFuture, InFlightLayer, InFlightService},
    layer::GuardLayer,
    peer::PeerAddress,
    policy::{Policy, PolicyError},
    routes::{RequestHead, Routes},
    service::GuardService,
    unknown_peer::UnknownPeers,
};
