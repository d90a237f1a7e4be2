//! Rate-limit rules: what they say, whom they match, and what is done with them; and limits that need none.
//!
//! | module | what it owns |
//! |---|---|
//! | [`scope`], [`pattern`], [`rule`] | what a rule says; one that exists is valid |
//! | [`draft`] | a rule before anybody knows whether it is one |
//! | [`compiled`], [`snapshot`] | rules made ready to decide, and who is matched by which |
//! | [`catalog`] | the snapshot in force, read without locks and replaced as a whole |
//! | [`keyed`] | limits that need no rule: an algorithm's name and a key |
//! | [`repository`], [`audit`] | what is asked of whoever keeps rules, and the record of changes |
//! | [`usecase`] | what callers do: check, look at usage, reset, explain, manage rules |
//! | [`tally`] | how often each rule admitted and denied |
//! | [`window`] | the text form of a window: `60s`, `1m`, `1h` |

pub mod audit;
pub mod catalog;
pub mod compiled;
pub mod draft;
pub mod keyed;
pub mod pattern;
pub mod repository;
pub mod rule;
pub mod scope;
pub mod snapshot;
pub mod tally;
pub mod usecase;
pub mod window;

pub use audit::{AuditEntry, AuditFilter, AuditLog};
pub use catalog::{Catalog, Refreshed};
pub use compiled::CompiledRule;
pub use draft::Draft;
pub use headgate_admin::{Author, FieldError, Input, Listed, Page, PageError, Revision};
pub use keyed::{KeyedAlgorithm, KeyedLimit, KeyedLimits, PerAlgorithm};
pub use pattern::{Pattern, PatternError};
pub use repository::{RateLimitRuleRepository, RepositoryError, RuleChange, RuleDelta, RuleFilter};
pub use rule::{RateLimitRule, RuleId, RuleSpec};
pub use scope::{Scope, UnknownScope};
pub use snapshot::{Defaults, Level, Matched, Snapshot};
pub use window::{InvalidWindow, Window};
