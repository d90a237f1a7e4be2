//! Costs that are known afterwards: reserved before the handler, settled by what it reports.
//!
//! | module | contents |
//! |---|---|
//! | `estimate` | [`Estimate`]: what a request is expected to cost |
//! | `layer`, `service` | [`ReserveLayer`]: the middleware |
//! | `units` | [`ReservedUnits`]: what a handler holds, and may charge while it streams |

mod estimate;
mod layer;
mod service;
mod units;

pub use self::{
    estimate::Estimate,
    layer::ReserveLayer,
    service::ReserveService,
    units::{OnDrop, ReservedUnits, SpentEach},
};
