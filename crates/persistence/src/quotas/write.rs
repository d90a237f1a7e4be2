//! Changes of policies: change, audit entry and revision in one transaction.

use headgate::Timestamp;
use headgate_quota::{
    Author, PolicyChange, QuotaId, QuotaPolicy, QuotaSpec, RepositoryError, Revision,
};
use headgate_ratelimit::AuditEntry;

use super::{
    commit, deletions,
    policies::{find, read_revision},
    record,
};
use crate::{
    Database, audit, listener, moment::Moment, outage::Outage, session::Session,
    statement::Statement, total::BoundedTotal,
};

/// Serializes writers: revisions are in the order of commits.
const NEXT_REVISION: &str = "
    UPDATE revisions SET revision = revision + 1 WHERE name = 'quota_policies'
    RETURNING revision";

const CREATE: &str = "
    INSERT INTO quota_policies (id, name, subject_type, subject_id, quota_limit, period, time_zone,
        enabled, alert_threshold_percent, created_at, updated_at, revision)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

const UPDATE: &str = "
    UPDATE quota_policies SET name = $2, subject_type = $3, subject_id = $4, quota_limit = $5,
        period = $6, time_zone = $7, enabled = $8, alert_threshold_percent = $9, created_at = $10,
        updated_at = $11, revision = $12
    WHERE id = $1";

const DELETE: &str = "DELETE FROM quota_policies WHERE id = $1";

/// The unique constraint on subject and period.
const IDENTITY: &str = "quota_policies_identity";

/// Applies a change in one transaction.
pub(super) struct Writer<'a> {
    session: Session,
    /// Author of the audit entry, if one is written.
    author: Option<&'a Author>,
    now: Timestamp,
    /// The revision after the change.
    revision: Revision,
    total: &'a BoundedTotal,
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Waits for other writers.
    pub(super) async fn begin(
        database: &'a Database,
        at: Timestamp,
        author: Option<&'a Author>,
    ) -> Result<Self, RepositoryError> {
        let mut session = database.writing().await?;
        let revision = next_revision(&mut session).await?;
        let now = Moment::shown(at);
        Ok(Self { session, author, now, revision, total: database.policy_total() })
    }

    /// Applies the change and returns the policy.
    pub(super) async fn write(
        mut self,
        change: &PolicyChange,
    ) -> Result<QuotaPolicy, RepositoryError> {
        let total = self.check_total(change).await?;
        let policy = match change {
            PolicyChange::Create(spec) => self.create(spec).await?,
            PolicyChange::Update { id, from, to } => self.update(id, from, to).await?,
            PolicyChange::Delete(id) => self.delete(id, None).await?,
            PolicyChange::DeleteIfUnchanged(id, expected) => {
                self.delete(id, Some(*expected)).await?
            }
        };
        notify(&mut self.session).await?;
        commit(self.session).await?;
        if let Some(total) = total {
            self.total.set(self.revision, total);
        }
        Ok(policy)
    }

    /// Rejects a policy beyond the maximum; returns the new number of policies, if it is known.
    async fn check_total(&mut self, change: &PolicyChange) -> Result<Option<u64>, RepositoryError> {
        let before = Revision(self.revision.0 - 1);
        Ok(match change {
            PolicyChange::Create(_) => {
                let present = self.total.at(before, &mut self.session).await?;
                if present >= self.total.max() {
                    return Err(RepositoryError::TooManyPolicies { max: self.total.max() });
                }
                Some(present + 1)
            }
            PolicyChange::Update { .. } => self.total.get(before),
            PolicyChange::Delete(_) | PolicyChange::DeleteIfUnchanged(..) => {
                self.total.get(before).map(|total| total.saturating_sub(1))
            }
        })
    }

    async fn create(&mut self, spec: &QuotaSpec) -> Result<QuotaPolicy, RepositoryError> {
        let (id, now) = (QuotaId::new(self.now), self.now);
        let policy = QuotaPolicy { id, spec: spec.clone(), created_at: now, updated_at: now };
        self.put(CREATE, &policy).await?;
        self.record("quota.create", &policy.id, None, Some(spec)).await?;
        Ok(policy)
    }

    async fn update(
        &mut self,
        id: &QuotaId,
        from: &QuotaSpec,
        to: &QuotaSpec,
    ) -> Result<QuotaPolicy, RepositoryError> {
        let before = self.find(id).await?;
        if before.spec != *from {
            return Err(RepositoryError::Changed(id.clone()));
        }
        // Must increase even if the clock of another replica is ahead: it identifies the version.
        let updated_at = self.now.max(before.updated_at.plus(Moment::TICK));
        let policy = QuotaPolicy { spec: to.clone(), updated_at, ..before };
        self.put(UPDATE, &policy).await?;
        self.record("quota.update", id, Some(from), Some(to)).await?;
        Ok(policy)
    }

    async fn delete(
        &mut self,
        id: &QuotaId,
        expected: Option<Timestamp>,
    ) -> Result<QuotaPolicy, RepositoryError> {
        let before = self.find(id).await?;
        if expected.is_some_and(|expected| expected != before.updated_at) {
            return Err(RepositoryError::Changed(id.clone()));
        }
        self.session.execute(Statement::new(DELETE).bind(id)).await?;
        deletions::write(&mut self.session, self.revision, &[id.to_string()]).await?;
        self.record("quota.delete", id, Some(&before.spec), None).await?;
        Ok(before)
    }

    async fn find(&mut self, id: &QuotaId) -> Result<QuotaPolicy, RepositoryError> {
        let policy = find(&mut self.session, id).await?;
        policy.ok_or_else(|| RepositoryError::NotFound(id.clone()))
    }

    async fn put(
        &mut self,
        sql: &'static str,
        policy: &QuotaPolicy,
    ) -> Result<(), RepositoryError> {
        let statement = record::bind(Statement::new(sql), policy).bind(self.revision.0);
        let put = self.session.execute(statement).await;
        put.map_err(|outage| {
            if outage.is_duplicate(IDENTITY) { exists(&policy.spec) } else { outage.into() }
        })
    }

    async fn record(
        &mut self,
        action: &str,
        id: &QuotaId,
        before: Option<&QuotaSpec>,
        after: Option<&QuotaSpec>,
    ) -> Result<(), Outage> {
        let Some(author) = self.author else { return Ok(()) };
        let entry = AuditEntry {
            // The audit log assigns the id.
            id: 0,
            author: author.clone(),
            action: action.to_owned(),
            target: id.to_string(),
            before: before.map(record::to_json),
            after: after.map(record::to_json),
            reason: None,
        };
        audit::add(&mut self.session, &entry).await
    }
}

/// Waits for other writers, and returns the next revision.
pub(super) async fn next_revision(session: &mut Session) -> Result<Revision, RepositoryError> {
    read_revision(session.row(Statement::new(NEXT_REVISION)).await?)
}

/// Notifies other servers when the transaction is committed.
pub(super) async fn notify(session: &mut Session) -> Result<(), Outage> {
    let Session::Postgres(_) = session else { return Ok(()) };
    session.execute(Statement::new(listener::NOTIFY).bind(listener::QUOTAS).bind("")).await
}

fn exists(spec: &QuotaSpec) -> RepositoryError {
    let (subject, period) = spec.identity();
    RepositoryError::Exists { subject: subject.clone(), period }
}
