//! What the penalties of a document mean to the guards.

use headgate_guard::Escalation;
use headgate_service_config::PenaltySettings;

/// The guards' escalation. A document whose penalties make no sense is never in force.
pub(crate) fn escalation(penalty: Option<PenaltySettings>) -> Option<Escalation> {
    let PenaltySettings { first, max, forgiven_after } = penalty?;
    Escalation::new(first, max, forgiven_after).ok()
}
