//! Limits on requests in flight: in this process, and over all instances.
//!
//! | module | contents |
//! |---|---|
//! | `layer`, `service`, `future`, `body` | [`InFlightLayer`]: the middleware |
//! | `places` | [`Places`]: the shared limits of a class, and their keys |
//! | `held` | [`HeldPlace`], [`PlaceHandle`]: the place of a request |
//! | `keeper` | [`Keeper`]: takes, renews and releases the places of a guard |

mod body;
mod future;
mod held;
mod keeper;
mod layer;
mod places;
mod service;

pub use self::{
    body::InFlightBody, future::InFlightFuture, layer::InFlightLayer, service::InFlightService,
};
pub(super) use self::{keeper::Keeper, places::Places};
