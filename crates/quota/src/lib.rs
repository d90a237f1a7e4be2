//! Quotas: what a policy says, how much of it is used, and what is done about it.
//!
//! | module | what it owns |
//! |---|---|
//! | [`id`], [`subject`], [`period`], [`policy`] | what a policy says; one that exists is valid |
//! | [`draft`] | a policy before anybody knows whether it is one |
//! | [`usage`], [`service`] | how much is used, and what that means |
//! | [`event`] | what others are told, once |
//! | [`repository`], [`ledger`], [`outbox`] | what is asked of whoever keeps policies, usage and events |
//! | [`counter`] | the fast copy of the ledger's usage, on any store |
//! | [`catalog`] | the policies in force, kept in step with the database |
//! | [`committer`] | many waiting increments, one transaction |
//! | [`quotas`] | what the use cases share |
//! | [`usecase`] | what callers do: increment, look at usage, reset, manage policies, keep house |
//!
//! **The ledger is the authority.** An increment is decided and committed by the ledger; the counter
//! is raised to what was committed before the caller is answered. It may be lost or behind, and
//! admits nothing that the ledger does not.

pub mod catalog;
pub mod committer;
pub mod counter;
pub mod draft;
pub mod event;
pub mod id;
mod known;
pub mod ledger;
mod mirror;
pub mod outbox;
pub mod period;
pub mod policy;
pub mod quotas;
pub mod repository;
pub mod service;
pub mod subject;
pub mod usage;
pub mod usecase;

pub use catalog::{ActivePolicy, PolicyCatalog};
pub use committer::Committer;
pub use counter::{QuotaCounter, Raised, Standing, StoreCounter};
pub use draft::Draft;
pub use event::{EventKind, QuotaEvent};
pub use headgate_admin::{Author, FieldError, Input, Listed, Page, PageError, Revision};
pub use id::{QuotaId, QuotaIdError};
pub use ledger::{Entry, Increment, Pruned, QuotaLedger, Reset, Retention, Touched, Verdict};
pub use outbox::{Backlog, Delivery, Leadership, LoggedEvent, QuotaEventLog};
pub use period::{QuotaPeriod, Span, Spans, UnknownPeriod};
pub use policy::{QuotaPolicy, QuotaSpec};
pub use quotas::Quotas;
pub use repository::{
    Changes, PolicyChange, PolicyFilter, QuotaPolicyRepository, RepositoryError, Unused,
};
pub use service::QuotaDomainService;
pub use subject::{Subject, SubjectType, UnknownSubjectType};
pub use usage::{PeriodUsage, QuotaUsage};
