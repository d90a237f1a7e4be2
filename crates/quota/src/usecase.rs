//! Use cases.

pub mod housekeeping;
pub mod increment;
pub mod policies;
pub mod reset;
pub mod usage;

pub use housekeeping::{Drift, Housekeeping};
pub use increment::{IncrementError, IncrementUsage, Incremented};
pub use policies::{ManageError, ManagePolicies};
pub use reset::{ResetDone, ResetError, ResetUsage};
pub use usage::{ReadError, ReadUsage, UsageCheck};
