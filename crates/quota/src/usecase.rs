//! Use cases.

pub mod housekeeping;
pub mod increment;
pub mod policies;
pub mod refund;
pub mod reserve;
pub mod reset;
pub mod usage;

pub use housekeeping::{Drift, Housekeeping};
pub use increment::{IncrementError, IncrementUsage, Incremented};
pub use policies::{ManageError, ManagePolicies};
pub use refund::{RefundDone, RefundError, RefundUsage};
pub use reserve::{ReservationError, ReservationRequest, ReserveUsage, Reserved};
pub use reset::{ResetDone, ResetError, ResetUsage};
pub use usage::{ReadError, ReadUsage, UsageCheck};
