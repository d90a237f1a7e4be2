//! Resets the usage of subjects.

use std::{borrow::Cow, fmt::Write as _, sync::Arc, time::Duration};

use headgate::{Algorithm, Batch, BatchLimiter, Check, Cost, Key, KeySpace, Limit, StoreError};
use thiserror::Error;

use super::reset_times::ResetTimes;
use crate::{Attributes, AuditEntry, AuditLog, Author, Catalog, RepositoryError, Scope, Snapshot};

/// Resets the usage of subjects and records it in the audit log.
#[derive(Clone)]
pub struct ResetLimit {
    catalog: Arc<Catalog>,
    pub(super) limiter: BatchLimiter,
    pub(super) audit: Arc<dyn AuditLog>,
}

/// The result of a reset.
#[derive(Clone, Debug)]
pub struct ResetReport {
    /// Result of the reset.
    pub outcome: Result<(), ResetError>,
    /// Error of recording the outcome in the audit log, which then has it as unknown.
    pub unsettled: Option<RepositoryError>,
}

/// An error of a reset, which may have been done.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// The audit log cannot be written: nothing was reset.
    #[error(transparent)]
    Unrecorded(RepositoryError),
    /// The request was not sent to the store: nothing was reset.
    #[error(transparent)]
    NotSent(StoreError),
    /// The store did not confirm the reset, which may have been done.
    #[error("the reset was not confirmed and may have been done: {0}")]
    Unconfirmed(StoreError),
}

/// A failed call of the store.
pub(super) struct ResetFailure {
    cause: StoreError,
    /// `true` if the store may have reset something.
    sent: bool,
}

/// A counter: its algorithm and window, its key space and its subject.
type Counter<'s> = (Limit, KeySpace<'s>, Cow<'s, str>);

/// A window, an algorithm, and the suffix of their keys.
type KeySuffix = (u32, Algorithm, String);

/// The action of a reset in the audit log.
pub(super) const RESET: &str = "counter.reset";

/// Recorded before a reset, and kept if its outcome stays unknown.
const UNKNOWN: &str = r#"{"outcome":"unknown"}"#;

/// Recorded for a reset that was not done.
const NOT_DONE: &str = r#"{"outcome":"not_done"}"#;

/// Maximum length of attributes in the audit log.
const MAX_TARGET_CHARS: usize = 512;

/// Maximum number of keys per store call.
const MAX_BATCH: usize = 100;

// === impl ResetLimit ===

impl ResetLimit {
    /// Creates the use case on the rules of `catalog`.
    pub fn new(catalog: Arc<Catalog>, limiter: BatchLimiter, audit: Arc<dyn AuditLog>) -> Self {
        Self { catalog, limiter, audit }
    }

    /// Resets the usage of a subject under every window and algorithm that can apply to it, and
    /// under the rules over attributes that count it. Nothing is reset if the audit log cannot be written first. If the future is dropped, the audit log
    /// has the outcome as unknown.
    pub async fn reset(
        &self,
        scope: Scope,
        subject: Key<'_>,
        reason: Option<String>,
        author: Author,
    ) -> ResetReport {
        let target = format!("{scope}:{}", subject.subject());
        let entry = entry(RESET, target, reason, author);
        recorded(&*self.audit, &entry, self.forget(scope, subject)).await
    }

    /// Resets what a check with these attributes counts: the usage of its subjects, and that of the
    /// rules over attributes that match. What a rule without `per` counts belongs to all checks and
    /// is kept. Otherwise as [`reset`](Self::reset).
    pub async fn reset_attributes(
        &self,
        attributes: &Attributes<'_>,
        reason: Option<String>,
        author: Author,
    ) -> ResetReport {
        let entry = entry(RESET, target(attributes), reason, author);
        recorded(&*self.audit, &entry, self.forget_attributes(attributes)).await
    }

    async fn forget(&self, scope: Scope, subject: Key<'_>) -> Result<(), ResetFailure> {
        let mut attributes = Attributes::default();
        // Cannot fail: a subject is shorter than an attribute may be.
        let _ = attributes.insert(scope.name(), subject.subject());
        self.forget_attributes(&attributes).await
    }

    async fn forget_attributes(&self, attributes: &Attributes<'_>) -> Result<(), ResetFailure> {
        let snapshot = self.catalog.load();
        let subjects = Scope::ALL.into_iter().filter_map(|scope| {
            let identifier = attributes.get(scope.name())?.text()?;
            Some((scope, identifier, snapshot.key_suffixes(scope, identifier)))
        });
        let subjects: Vec<(Scope, &str, Vec<KeySuffix>)> = subjects.collect();
        let of_subjects = subjects.iter().flat_map(|(scope, identifier, suffixes)| {
            suffixes.iter().filter_map(|suffix| of_subject(*scope, identifier, suffix))
        });
        let counters: Vec<Counter<'_>> =
            of_subjects.chain(of_selectors(&snapshot, attributes)).collect();
        for (i, some) in counters.chunks(MAX_BATCH).enumerate() {
            let checks = some.iter().filter_map(|(limit, space, subject)| {
                let key = Key::new(subject).ok()?.within(space);
                Check::new(key, limit, Cost::ONE).ok()
            });
            let times = ResetTimes::of(some.iter().map(|(_, space, subject)| (space, &**subject)));
            if let Ok(batch) = Batch::new(checks.chain(times.checks())) {
                let reset = self.limiter.reset(&batch).await;
                reset.map_err(|cause| ResetFailure::from(cause).after(i))?;
                // Afterwards: what is taken in between can only not be refunded.
                let recorded = times.record(&self.limiter).await;
                recorded.map_err(|cause| ResetFailure::from(cause).after(i + 1))?;
            }
        }
        Ok(())
    }
}

fn of_subject<'s>(
    scope: Scope,
    identifier: &'s str,
    (window, algorithm, suffix): &'s KeySuffix,
) -> Option<Counter<'s>> {
    let limit = Limit::new(*algorithm, 1, Duration::from_secs((*window).into())).ok()?;
    Some((limit, KeySpace::new(scope.key_prefix(), suffix), identifier.into()))
}

/// Returns what the rules over attributes count for this check alone.
fn of_selectors<'s>(
    snapshot: &'s Snapshot,
    attributes: &'s Attributes<'_>,
) -> impl Iterator<Item = Counter<'s>> {
    snapshot.selected(attributes).into_iter().filter_map(move |rule| {
        let selector = rule.selector().filter(|selector| selector.per().next().is_some())?;
        Some((rule.limit().clone(), rule.space(Scope::Attributes), selector.subject(attributes)))
    })
}

/// Returns the attributes as the target of an audit entry.
pub(super) fn target(attributes: &Attributes<'_>) -> String {
    let mut text = String::from("attributes");
    for (i, (name, value)) in attributes.iter().enumerate() {
        let values: Vec<&str> = value.texts().collect();
        let separator = if i == 0 { ':' } else { ',' };
        let _ = write!(text, "{separator}{name}={}", values.join("|"));
    }
    text.chars().filter(|char| !char.is_control()).take(MAX_TARGET_CHARS).collect()
}

impl std::fmt::Debug for ResetLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResetLimit").finish_non_exhaustive()
    }
}

// === impl ResetFailure ===

impl ResetFailure {
    /// The failure of a call after `calls` successful ones.
    const fn after(mut self, calls: usize) -> Self {
        self.sent |= calls > 0;
        self
    }
}

impl From<ResetFailure> for ResetError {
    fn from(ResetFailure { cause, sent }: ResetFailure) -> Self {
        if sent { Self::Unconfirmed(cause) } else { Self::NotSent(cause) }
    }
}

impl From<StoreError> for ResetFailure {
    fn from(cause: StoreError) -> Self {
        let sent = !cause.is_unsent();
        Self { cause, sent }
    }
}

/// The audit entry of an action that is about to be made.
pub(super) fn entry(
    action: &str,
    target: String,
    reason: Option<String>,
    author: Author,
) -> AuditEntry {
    AuditEntry {
        // The audit log assigns the id.
        id: 0,
        author,
        action: action.to_owned(),
        target,
        before: None,
        after: Some(UNKNOWN.to_owned()),
        reason,
    }
}

/// Records `entry`, runs `forget`, then records the outcome.
pub(super) async fn recorded(
    audit: &dyn AuditLog,
    entry: &AuditEntry,
    forget: impl Future<Output = Result<(), ResetFailure>>,
) -> ResetReport {
    let id = match audit.record(entry).await {
        Ok(id) => id,
        Err(error) => {
            return ResetReport { outcome: Err(ResetError::Unrecorded(error)), unsettled: None };
        }
    };
    let outcome = forget.await.map_err(ResetError::from);
    let settled = match &outcome {
        Ok(()) => audit.settle(id, None).await,
        Err(ResetError::NotSent(_)) => audit.settle(id, Some(NOT_DONE)).await,
        // The entry already has the outcome as unknown.
        Err(_) => Ok(()),
    };
    ResetReport { outcome, unsettled: settled.err() }
}
