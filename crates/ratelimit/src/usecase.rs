//! Use cases.

pub mod applicable;
pub mod check;
pub mod end_lease;
pub mod explain;
pub mod explain_attributes;
pub mod keyed;
pub mod overrides;
pub mod reset;
mod reset_times;
pub mod rules;
pub mod usage;

pub use check::{
    AnyQuestion, AttributesQuestion, CheckError, CheckRateLimit, Question, RefundError, Refunded,
    ReservationError, ReservationRequest, Verdict,
};
pub use end_lease::EndReport;
pub use explain::{Explain, Explanation};
pub use explain_attributes::{AttributesExplanation, ExplainedSelector};
pub use keyed::{KeyedError, KeyedQuestion, KeyedVerdict, LimitKeys};
pub use overrides::ManageOverrides;
pub use reset::{ResetError, ResetLimit, ResetReport};
pub use rules::{ManageError, ManageRules, Plan, RuleList};
pub use usage::{GetUsage, Usage, UsageError};
