//! Rate limit rules: the model, matching and use cases; and limits by key that need no rules.
//!
//! | module | contents |
//! |---|---|
//! | [`scope`], [`pattern`], [`rule`] | the fields of a rule; a [`RuleSpec`] is always valid |
//! | [`attributes`], [`condition`], [`selector`] | rules over the attributes of a check |
//! | [`plan_limits`], [`overrides`] | limits by the value of an attribute, and for single subjects |
//! | [`draft`] | validation |
//! | [`compiled`], [`snapshot`] | rules compiled for checks, and matching by identifier |
//! | [`catalog`] | the current snapshot: read without locks, replaced as a whole |
//! | [`lease_id`] | ids of the leases under which places are held |
//! | [`reservation`] | ids of reservations, which describe them |
//! | [`keyed`] | limits without rules, by algorithm and key |
//! | [`repository`], [`audit`] | traits of the storage of rules and of the audit log |
//! | [`usecase`] | check, reserve, refund, usage, reset, explain, manage rules |
//! | [`tally`] | decisions per rule |
//! | [`window`] | the text form of a window: `60s`, `1m`, `1h` |

pub mod attributes;
pub mod audit;
pub mod catalog;
pub mod compiled;
pub mod condition;
pub mod draft;
pub mod keyed;
pub mod lease_id;
pub mod overrides;
pub mod pattern;
pub mod plan_limits;
pub mod repository;
pub mod reservation;
pub mod rule;
pub mod scope;
pub mod selector;
pub mod snapshot;
pub mod tally;
pub mod usecase;
pub mod window;

pub use attributes::{AttributeError, AttributeValue, Attributes};
pub use audit::{AuditEntry, AuditFilter, AuditLog};
pub use catalog::{Catalog, PreparedDefaults, Refreshed};
pub use compiled::{CompiledRule, LimitSource};
pub use condition::Condition;
pub use draft::{Draft, LeaseDraft, SelectorDraft};
pub use headgate_admin::{Author, FieldError, Input, Listed, Page, PageError, Revision};
pub use keyed::{KeyedAlgorithm, KeyedLimit, KeyedLimits, PerAlgorithm};
pub use lease_id::{PlaceLeaseId, PlaceLeaseIdError};
pub use overrides::{
    OverrideDraft, OverrideFilter, OverrideId, OverrideSpec, OverrideSubject, RuleOverride,
};
pub use pattern::{Pattern, PatternError};
pub use plan_limits::PlanLimits;
pub use repository::{
    OverrideRepository, RateLimitRuleRepository, RepositoryError, RuleChange, RuleDelta, RuleFilter,
};
pub use reservation::{ReservationId, ReservationIdTooLong};
pub use rule::{RateLimitRule, RuleId, RuleSpec};
pub use scope::{RuleScope, Scope, UnknownRuleScope, UnknownScope};
pub use selector::{Mismatch, Selector, Warning};
pub use snapshot::{Defaults, Level, Matched, Snapshot};
pub use window::{InvalidWindow, Window};
