//! The holders of places, for operators.

use std::sync::Arc;

use headgate::{Check, Cost, Holders, Key, LeaseId, OwnedKey};

use super::{AnyQuestion, CheckError, CheckRateLimit};
use crate::{CompiledRule, PlaceLeaseId, usecase::reset};

/// The holders of one rule's places, for one subject.
#[derive(Clone, Debug)]
pub struct RuleHolders {
    /// The rule, with the limit of the subject.
    pub rule: Arc<CompiledRule>,
    /// What it counts: an identifier, or the values of `per`.
    pub subject: String,
    /// The holders.
    pub holders: Holders,
    key: OwnedKey,
}

/// A lease that was found by its [handle](PlaceLeaseId::handle), and the places that it holds.
#[derive(Clone, Debug)]
pub struct HeldLease {
    pub(in crate::usecase) id: LeaseId,
    pub(in crate::usecase) limits: Vec<(Arc<CompiledRule>, OwnedKey)>,
    /// The check by which it was found, for the audit log.
    pub(in crate::usecase) target: String,
    /// Number of places.
    pub places: u64,
}

impl CheckRateLimit {
    /// Lists the holders of the places that an acquisition of this check would take, at most `max`
    /// for each concurrency rule. Takes nothing.
    ///
    /// # Errors
    ///
    /// The check is invalid, or the store does not answer: no failure policy knows the holders.
    pub async fn holders(
        &self,
        question: &AnyQuestion<'_>,
        max: usize,
    ) -> Result<Vec<RuleHolders>, CheckError> {
        let snapshot = self.catalog.load();
        let attributes = question.attributes_for(&snapshot);
        let resolved = self.resolve(&snapshot, question, &attributes)?;
        let mut listed = Vec::new();
        for (rule, space, subject) in &resolved.limits {
            if !rule.holds_places() {
                continue;
            }
            let key = Key::new(subject).map_err(CheckError::Subject)?.within(space);
            let check = Check::new(key, rule.limit(), Cost::ONE)?;
            let holders = self.limiter.holders(check, max).await?;
            let (rule, subject, key) = (Arc::clone(rule), subject.to_string(), key.to_owned());
            listed.push(RuleHolders { rule, subject, holders, key });
        }
        Ok(listed)
    }

    /// Finds a lease by its handle among the first [`Holders::MAX_LISTED`] holders of each rule.
    ///
    /// # Errors
    ///
    /// As [`holders`](Self::holders).
    pub async fn find_lease(
        &self,
        question: &AnyQuestion<'_>,
        handle: &str,
    ) -> Result<Option<HeldLease>, CheckError> {
        let mut found: Option<HeldLease> = None;
        for RuleHolders { rule, holders, key, .. } in
            self.holders(question, Holders::MAX_LISTED).await?
        {
            let is_it = |id: LeaseId| PlaceLeaseId::handle(id) == handle;
            if let Some(holder) = holders.first.iter().find(|holder| is_it(holder.id)) {
                let lease = found.get_or_insert_with(|| HeldLease {
                    id: holder.id,
                    limits: Vec::new(),
                    target: target(question),
                    places: 0,
                });
                lease.limits.push((rule, key));
                lease.places += u64::from(holder.places);
            }
        }
        Ok(found)
    }
}

fn target(question: &AnyQuestion<'_>) -> String {
    match question {
        AnyQuestion::Subject(one) => format!("{}:{}", one.scope, one.subject.subject()),
        AnyQuestion::Attributes(one) => reset::target(&one.attributes),
    }
}
