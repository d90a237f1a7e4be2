//! Changes of rules: changes, audit entries and revision in one transaction.

use headgate::Timestamp;
use headgate_ratelimit::{
    AuditEntry, Author, RateLimitRule, RepositoryError, Revision, RuleChange, RuleId, RuleSpec,
};

use super::{
    CHUNK,
    batch::{self, Identity, Sql},
    delta, find_all,
    pending::{AppliedChange, PendingChanges},
    read_revision,
    record::{self, WireRule},
};
use crate::{
    audit, listener, moment::Moment, outage::Outage, overrides, session::Session,
    statement::Statement, total::BoundedTotal,
};

/// Serializes writers: revisions are in the order of commits.
const NEXT_REVISION: &str = "
    UPDATE revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules'
    RETURNING revision";

/// The unique constraint on scope, pattern and window.
const IDENTITY: &str = "rate_limit_rules_identity";

/// Applies changes in one transaction.
pub(super) struct Writer<'a> {
    session: Session,
    author: &'a Author,
    now: Timestamp,
    /// The revision after the changes.
    revision: Revision,
    total: &'a BoundedTotal,
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Waits for other writers; then the rules must be of the revision `expected`, if given.
    pub(super) async fn begin(
        mut session: Session,
        expected: Option<Revision>,
        author: &'a Author,
        total: &'a BoundedTotal,
    ) -> Result<Self, RepositoryError> {
        let revision = next_revision(&mut session).await?;
        let actual = Revision(revision.0 - 1);
        if let Some(expected) = expected.filter(|expected| *expected != actual) {
            return Err(RepositoryError::RulesChanged { expected, actual });
        }
        let now = Moment::shown(author.at);
        Ok(Self { session, author, now, revision, total })
    }

    /// Applies the changes in order and returns the rules.
    pub(super) async fn write(
        mut self,
        changes: &[RuleChange],
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        let present = find_all(&mut self.session, &named(changes)).await?;
        let mut pending = PendingChanges::new(present, self.now);
        let mut rules = Vec::with_capacity(changes.len());
        for change in changes {
            rules.push(pending.apply(change)?);
        }
        let total = self.check_total(&pending).await?;
        self.write_rules(&pending, changes.len()).await?;
        self.record(pending.applied()).await?;
        delta::write(&mut self.session, self.revision, &pending.changed_ids()).await?;
        for deleted in pending.deleted().chunks(CHUNK) {
            overrides::delete_of_rules(&mut self.session, self.revision, deleted).await?;
        }
        if let Session::Postgres(_) = self.session {
            let notify = Statement::new(listener::NOTIFY).bind(listener::RULES).bind("");
            self.session.execute(notify).await?;
        }
        self.session.commit().await?;
        if let Some(total) = total {
            self.total.set(self.revision, total);
        }
        Ok(rules)
    }

    /// Rejects rules beyond the maximum; returns the new number of rules, if it is known.
    async fn check_total(
        &mut self,
        pending: &PendingChanges,
    ) -> Result<Option<u64>, RepositoryError> {
        let (created, deleted) = (pending.created().len() as u64, pending.deleted().len() as u64);
        let before = Revision(self.revision.0 - 1);
        let present = if created > deleted {
            Some(self.total.at(before, &mut self.session).await?)
        } else {
            self.total.get(before)
        };
        let total = present.map(|present| (present + created).saturating_sub(deleted));
        if created > deleted && total > Some(self.total.max()) {
            return Err(RepositoryError::TooManyRules { max: self.total.max() });
        }
        Ok(total)
    }

    /// Writes the result of all changes.
    async fn write_rules(
        &mut self,
        pending: &PendingChanges,
        changes: usize,
    ) -> Result<(), RepositoryError> {
        for deleted in pending.deleted().chunks(CHUNK) {
            self.session.execute(batch::statement(batch::DELETE, &batch::ids(deleted))).await?;
        }
        let updated = pending.updated();
        if changes > 1 {
            // Two rules may swap patterns, but databases check the unique constraint after every
            // statement: give them temporary patterns first.
            for parked in updated.chunks(CHUNK) {
                let ids: Vec<RuleId> = parked.iter().map(|rule| rule.id).collect();
                self.session.execute(batch::statement(batch::PARK, &batch::ids(&ids))).await?;
            }
        }
        if let Some(duplicate) = pending.duplicate() {
            return Err(exists(duplicate));
        }
        self.reject_duplicates(&pending.new_identities()).await?;
        self.put(batch::UPDATE, &updated).await?;
        self.put(batch::CREATE, pending.created()).await?;
        self.check_windows(&pending.new_subjects()).await
    }

    /// Rejects rules that exist already. Writers are serialized, so none is added in between.
    async fn reject_duplicates(&mut self, specs: &[&RuleSpec]) -> Result<(), RepositoryError> {
        for chunk in specs.chunks(CHUNK) {
            let identities: Vec<Identity> =
                chunk.iter().map(|spec| Identity::from(*spec)).collect();
            let found = self.session.row(batch::statement(batch::DUPLICATES, &identities)).await?;
            let Some(row) = found else { continue };
            let pattern: String = row.get("identifier_pattern").map_err(Outage::Sql)?;
            let window: i64 = row.get("window_secs").map_err(Outage::Sql)?;
            let is_duplicate = |spec: &&&RuleSpec| {
                spec.identifier_pattern.to_string() == pattern
                    && i64::from(spec.window_seconds) == window
            };
            return Err(exists(chunk.iter().find(is_duplicate).unwrap_or(&chunk[0])));
        }
        Ok(())
    }

    /// Rejects rules beyond the maximum number of windows. Patterns that exceeded it before it was
    /// enforced may keep their rules.
    async fn check_windows(&mut self, specs: &[&RuleSpec]) -> Result<(), RepositoryError> {
        let max = RateLimitRule::MAX_WINDOWS as i64;
        for chunk in specs.chunks(CHUNK) {
            let identities: Vec<Identity> =
                chunk.iter().map(|spec| Identity::from(*spec)).collect();
            let select = batch::statement(batch::TOO_MANY_WINDOWS, &identities).bind(max);
            let Some(row) = self.session.row(select).await? else { continue };
            let pattern: String = row.get("identifier_pattern").map_err(Outage::Sql)?;
            let has_pattern = |spec: &&&RuleSpec| spec.identifier_pattern.to_string() == pattern;
            let (scope, pattern, _) =
                chunk.iter().find(has_pattern).unwrap_or(&chunk[0]).identity();
            return Err(RepositoryError::TooManyWindows { scope, pattern: pattern.clone() });
        }
        Ok(())
    }

    async fn put(&mut self, sql: Sql, rules: &[RateLimitRule]) -> Result<(), RepositoryError> {
        for chunk in rules.chunks(CHUNK) {
            let rows: Vec<WireRule<'_>> = chunk.iter().map(WireRule::from).collect();
            let put = self.session.execute(batch::statement(sql, &rows)).await;
            // Direct writes to the database are not serialized with ours.
            put.map_err(|outage| {
                if outage.is_duplicate(IDENTITY) { exists(&chunk[0].spec) } else { outage.into() }
            })?;
        }
        Ok(())
    }

    async fn record(&mut self, changes: &[AppliedChange]) -> Result<(), Outage> {
        for chunk in changes.chunks(CHUNK) {
            let entry = |change: &AppliedChange| AuditEntry {
                // The audit log assigns the id.
                id: 0,
                author: self.author.clone(),
                action: change.action().to_owned(),
                target: change.id.to_string(),
                before: change.before.as_ref().map(record::to_json),
                after: change.after.as_ref().map(record::to_json),
                reason: None,
            };
            let entries: Vec<AuditEntry> = chunk.iter().map(entry).collect();
            audit::add_all(&mut self.session, self.author, &entries).await?;
        }
        Ok(())
    }
}

/// Waits for other writers, and returns the revision after the changes.
pub(crate) async fn next_revision(session: &mut Session) -> Result<Revision, RepositoryError> {
    read_revision(session.row(Statement::new(NEXT_REVISION)).await?)
}

/// Returns the existing rules that changes name.
fn named(changes: &[RuleChange]) -> Vec<RuleId> {
    let id = |change: &RuleChange| match change {
        RuleChange::Create(_) => None,
        RuleChange::Update(id, _)
        | RuleChange::UpdateIfUnchanged(id, ..)
        | RuleChange::Delete(id)
        | RuleChange::DeleteIfUnchanged(id, _) => Some(*id),
    };
    changes.iter().filter_map(id).collect()
}

fn exists(spec: &RuleSpec) -> RepositoryError {
    let (scope, pattern, window_seconds) = spec.identity();
    RepositoryError::Exists { scope, pattern: pattern.clone(), window_seconds }
}
