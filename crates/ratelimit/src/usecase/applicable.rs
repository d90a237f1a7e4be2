//! The rules of a check, for callers that decide several checks in a batch of their own.

use std::sync::Arc;

use headgate::{Key, Limit, OwnedKey};

use super::check::{CheckError, Resolved};
use crate::{Attributes, Catalog, CompiledRule, Snapshot};

/// A rule that must admit a check, and the key that it counts.
#[derive(Clone, Debug)]
pub struct ApplicableRule {
    /// The rule, which is enabled.
    pub rule: Arc<CompiledRule>,
    /// The key of its counter: the same as for all other callers.
    pub key: OwnedKey,
}

impl Catalog {
    /// Returns the enabled rules of `snapshot` that must admit a check with these attributes: those over
    /// attributes, and those of the subjects that the attributes `service`, `user` and `endpoint`
    /// name. The default limit does not apply, nor do concurrency limits, whose places such callers
    /// could not release.
    ///
    /// # Errors
    ///
    /// Too many rules match, or an attribute is not a valid identifier of a subject with rules.
    pub fn applicable(
        &self,
        snapshot: &Snapshot,
        attributes: &Attributes<'_>,
    ) -> Result<Vec<ApplicableRule>, CheckError> {
        let resolved = Resolved::new(snapshot, attributes, None, &|| self.now())?;
        let counted = resolved.limits.iter().filter(|(rule, ..)| !rule.holds_places());
        let limits = counted.map(|(rule, space, subject)| {
            let key = Key::new(subject).map_err(CheckError::Subject)?.within(space).to_owned();
            Ok(ApplicableRule { rule: Arc::clone(rule), key })
        });
        limits.collect()
    }
}

// === impl ApplicableRule ===

impl ApplicableRule {
    /// Returns the limit of this check.
    pub fn limit(&self) -> &Limit {
        self.rule.limit()
    }

    /// Returns the units per window.
    pub fn units_per_window(&self) -> u32 {
        u32::try_from(self.rule.units()).unwrap_or(u32::MAX)
    }
}
