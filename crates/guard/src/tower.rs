//! Middleware for HTTP and gRPC services.
//!
//! | module | contents |
//! |---|---|
//! | `class`, `policy` | [`Class`], [`Policy`]: the limits, which can be replaced |
//! | `routes` | [`Routes`]: assigns requests to classes |
//! | `key_extractor` | [`KeyExtractor`]: keys other than the client's address |
//! | `peer`, `unknown_peer` | [`PeerAddress`], [`UnknownPeers`]: the peer address of a connection |
//! | `guard`, `builder` | [`Guard`]: the policy in force, and its layers |
//! | `shared`, `compiled`, `direct` | decisions under a compiled policy |
//! | `layer`, `service`, `future` | [`GuardLayer`]: the middleware |
//! | `denial`, `headers` | [`Denial`]: responses to denied requests |
//! | `in_flight` | [`InFlightLayer`]: limits on requests in flight, here and over all instances |
//! | `reserve` | [`ReserveLayer`]: costs that are known afterwards |

mod builder;
mod class;
mod compiled;
mod denial;
mod direct;
mod future;
mod guard;
mod headers;
mod in_flight;
mod key_extractor;
mod layer;
mod peer;
mod policy;
mod reserve;
mod routes;
mod service;
mod shared;
mod unknown_peer;

pub(crate) use self::service::surface;
pub use self::{
    builder::GuardBuilder,
    class::Class,
    denial::{Custom, Denial, Grpc, Render, Standard},
    future::ResponseFuture,
    guard::Guard,
    in_flight::{InFlightBody, InFlightFuture, InFlightLayer, InFlightService},
    key_extractor::{KeyExtractor, MissingKey, RequestKey},
    layer::GuardLayer,
    peer::PeerAddress,
    policy::{Policy, PolicyError},
    reserve::{Estimate, OnDrop, ReserveLayer, ReserveService, ReservedUnits, SpentEach},
    routes::{RequestHead, Routes},
    service::GuardService,
    unknown_peer::UnknownPeers,
};
