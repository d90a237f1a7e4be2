//! Quotas: policies, usage, events and use cases.
//!
//! | module | contents |
//! |---|---|
//! | [`id`], [`subject`], [`period`], [`policy`] | the fields of a policy; a [`QuotaSpec`] is always valid |
//! | [`draft`] | validation |
//! | [`usage`] | usage and its arithmetic |
//! | [`reservation`] | units that are set aside before their use is known |
//! | [`event`] | events, each recorded once per period |
//! | [`repository`], [`ledger`], [`outbox`] | traits of the storage of policies, usage and events |
//! | [`counter`] | a fast copy of the ledger's usage, on any store |
//! | [`catalog`] | the current policies, in sync with the database |
//! | [`committer`] | group commit |
//! | [`quotas`] | state that the use cases share |
//! | [`usecase`] | increment, reserve, refund, usage, reset, manage policies, housekeeping |
//!
//! **The ledger is the authority.** It decides and commits increments and reservations. Counters are raised to the
//! committed usage before the caller gets the response; they may be lost or behind, and never admit
//! what the ledger would not.

pub mod catalog;
pub mod committer;
pub mod counter;
mod counter_updater;
pub mod draft;
pub mod event;
pub mod id;
pub mod ledger;
pub mod outbox;
pub mod period;
pub mod policy;
pub mod quotas;
mod recent_usage;
pub mod repository;
pub mod reservation;
pub mod subject;
pub mod usage;
pub mod usecase;

pub use catalog::{ActivePolicy, PolicyCatalog};
pub use committer::{Commit, CommitObserver, Committer};
pub use counter::{CommittedUsage, QuotaCounter, RaiseOutcome, StoreCounter};
pub use draft::Draft;
pub use event::{EventKind, QuotaEvent};
pub use headgate_admin::{Author, FieldError, Input, Listed, Page, PageError, Revision};
pub use id::{QuotaId, QuotaIdError};
pub use ledger::{
    ChangedPeriod, Effect, Increment, IncrementOutcome, IncrementResult, Operation,
    OperationResult, Patience, Posted, Pruned, QuotaLedger, Refund, RefundOutcome, RefundResult,
    ReservationAction, ReservationChange, ReservationOutcome, ReservationResult, Reserve, Reset,
    Retention,
};
pub use outbox::{Backlog, Delivery, Leadership, LoggedEvent, QuotaEventLog};
pub use period::{PeriodCalendar, PeriodSpan, QuotaPeriod, UnknownPeriod};
pub use policy::{QuotaPolicy, QuotaSpec};
pub use quotas::Quotas;
pub use repository::{
    Changes, PolicyChange, PolicyFilter, QuotaPolicyRepository, RepositoryError, Unused,
};
pub use reservation::{LastUse, Reservation, ReservationId, ReservationStatus, SettledFor};
pub use subject::{Subject, SubjectType, UnknownSubjectType};
pub use usage::{PeriodUsage, QuotaUsage, Units};
