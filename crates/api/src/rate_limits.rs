//! The use cases of rate limits as REST and gRPC serve them: metered, logged and traced.
//!
//! | module | what it owns |
//! |---|---|
//! | `checks` | [`MeteredChecks`]: checks by rules, reservations and refunds |
//! | `keys` | [`MeteredKeys`]: checks by key, without rules |
//! | `rules` | [`RuleAdmin`]: managing rules, usage, explanations, resets, the audit log |
//! | `top_denied` | [`TopDenied`]: the subjects denied most often, in bounded memory |
//! | `reservation_refusal` | [`ReservationRefusal`]: errors of reservations and refunds |
//! | `reason` | [`Reason`]: the `reason` of a decision |
//! | `check_metrics`, `key_metrics`, `rule_metrics` | the metrics of these |

mod check_metrics;
mod checks;
mod key_metrics;
mod keys;
mod reason;
mod reservation_refusal;
mod rule_metrics;
mod rules;
mod top_denied;

pub use self::{
    check_metrics::CheckMetrics,
    checks::MeteredChecks,
    key_metrics::KeyMetrics,
    keys::MeteredKeys,
    reason::Reason,
    reservation_refusal::ReservationRefusal,
    rule_metrics::RulesCollector,
    rules::RuleAdmin,
    top_denied::{DeniedSubject, TopDenied},
};
