//! Changes of overrides: the change, its audit entry and the revision in one transaction.

use std::time::Duration;

use headgate::Timestamp;
use headgate_ratelimit::{
    AuditEntry, Author, OverrideId, OverrideSpec, RepositoryError, Revision, RuleId, RuleOverride,
};

use super::{delta, find, record};
use crate::{
    audit, listener, moment::Moment, outage::Outage, row::Row, rules, session::Session,
    statement::Statement, total::BoundedTotal,
};

/// Overrides are deleted this long after their end.
const KEPT_AFTER_END: Duration = Duration::from_hours(24 * 30);

/// Maximum number of ended overrides that one change deletes.
const MAX_PRUNED: u64 = 100;

const COUNT: &str = "SELECT count(*) AS total FROM rate_limit_overrides";

const RULE: &str = "SELECT id FROM rate_limit_rules WHERE id = $1";

const SAME: &str = "SELECT id FROM rate_limit_overrides WHERE rule_id = $1 AND subject = $2";

const CREATE: &str = "
    INSERT INTO rate_limit_overrides
        (id, rule_id, subject, limit_count, ends_at, reason, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const UPDATE: &str = "
    UPDATE rate_limit_overrides SET limit_count = $2, ends_at = $3, reason = $4, updated_at = $5
    WHERE id = $1";

const DELETE: &str = "DELETE FROM rate_limit_overrides WHERE id = $1";

const DELETE_ENDED: &str = "
    DELETE FROM rate_limit_overrides WHERE id IN (
        SELECT id FROM rate_limit_overrides WHERE ends_at < $1 ORDER BY ends_at LIMIT $2)
    RETURNING id";

const DELETE_OF_RULES: (&str, &str) = (
    "DELETE FROM rate_limit_overrides WHERE rule_id IN (
        SELECT CAST(value AS uuid) FROM jsonb_array_elements_text(CAST($1 AS jsonb)))
    RETURNING id",
    "DELETE FROM rate_limit_overrides WHERE rule_id IN (SELECT value FROM json_each($1))
    RETURNING id",
);

/// Applies one change in one transaction.
pub(super) struct Writer<'a> {
    session: Session,
    author: &'a Author,
    now: Timestamp,
    /// The revision after the change.
    revision: Revision,
    rules: &'a BoundedTotal,
}

impl<'a> Writer<'a> {
    /// Waits for other writers of rules and overrides.
    pub(super) async fn begin(
        mut session: Session,
        author: &'a Author,
        rules: &'a BoundedTotal,
    ) -> Result<Self, RepositoryError> {
        let revision = rules::next_revision(&mut session).await?;
        Ok(Self { session, author, now: Moment::shown(author.at), revision, rules })
    }

    /// Creates an override or replaces the one of the same rule and subject.
    pub(super) async fn set(
        mut self,
        spec: &OverrideSpec,
    ) -> Result<(RuleOverride, bool), RepositoryError> {
        let rule = self.session.row(Statement::new(RULE).bind(spec.rule)).await?;
        rule.ok_or(RepositoryError::NotFound(spec.rule))?;
        let spec = OverrideSpec { until: spec.until.map(Moment::shown), ..spec.clone() };
        let subject = spec.subject.to_json().to_string();
        let same = Statement::new(SAME).bind(spec.rule).bind(&*subject);
        let before = match self.session.row(same).await? {
            Some(row) => find(&mut self.session, id(&row)?).await?,
            None => None,
        };
        let mut changed = self.prune().await?;
        let is_new = before.is_none();
        let set = match &before {
            Some(before) => self.update(before, spec).await?,
            None => self.create(spec, &subject).await?,
        };
        changed.retain(|pruned| *pruned != set.id);
        changed.push(set.id);
        self.record("override.set", set.id, before.as_ref(), Some(&set)).await?;
        self.commit(&changed).await?;
        Ok((set, is_new))
    }

    /// Deletes an override.
    pub(super) async fn delete(mut self, id: OverrideId) -> Result<RuleOverride, RepositoryError> {
        let found = find(&mut self.session, id).await?;
        let before = found.ok_or(RepositoryError::NoSuchOverride(id))?;
        self.session.execute(Statement::new(DELETE).bind(id)).await?;
        self.record("override.delete", id, Some(&before), None).await?;
        self.commit(&[id]).await?;
        Ok(before)
    }

    async fn create(
        &mut self,
        spec: OverrideSpec,
        subject: &str,
    ) -> Result<RuleOverride, RepositoryError> {
        if self.session.count(Statement::new(COUNT)).await? >= RuleOverride::MAX {
            return Err(RepositoryError::TooManyOverrides);
        }
        let (id, now) = (OverrideId::random(), self.now);
        let create = Statement::new(CREATE)
            .bind(id)
            .bind(spec.rule)
            .bind(subject)
            .bind(spec.limit)
            .bind(spec.until)
            .bind(spec.reason.as_deref())
            .bind(now)
            .bind(now);
        self.session.execute(create).await?;
        Ok(RuleOverride { id, spec, created_at: now, updated_at: now })
    }

    async fn update(
        &mut self,
        before: &RuleOverride,
        spec: OverrideSpec,
    ) -> Result<RuleOverride, RepositoryError> {
        // Must increase even if the clock of another replica is ahead.
        let updated_at = self.now.max(before.updated_at.plus(Moment::TICK));
        let update = Statement::new(UPDATE)
            .bind(before.id)
            .bind(spec.limit)
            .bind(spec.until)
            .bind(spec.reason.as_deref())
            .bind(updated_at);
        self.session.execute(update).await?;
        Ok(RuleOverride { id: before.id, spec, created_at: before.created_at, updated_at })
    }

    /// Deletes some overrides that ended long ago. Their end was on record from the beginning.
    async fn prune(&mut self) -> Result<Vec<OverrideId>, RepositoryError> {
        let kept = u64::try_from(KEPT_AFTER_END.as_micros()).unwrap_or(u64::MAX);
        let oldest = Timestamp::from_micros(self.now.as_micros().saturating_sub(kept));
        let ended = Statement::new(DELETE_ENDED).bind(oldest).bind(MAX_PRUNED);
        self.session.rows(ended).await?.iter().map(id).collect()
    }

    async fn record(
        &mut self,
        action: &str,
        id: OverrideId,
        before: Option<&RuleOverride>,
        after: Option<&RuleOverride>,
    ) -> Result<(), Outage> {
        let json = |one: &RuleOverride| record::to_json(&one.spec);
        let entry = AuditEntry {
            // The audit log assigns the id.
            id: 0,
            author: self.author.clone(),
            action: action.to_owned(),
            target: id.to_string(),
            before: before.map(json),
            after: after.map(json),
            reason: after.and_then(|after| after.spec.reason.clone()),
        };
        audit::add(&mut self.session, &entry).await
    }

    async fn commit(mut self, changed: &[OverrideId]) -> Result<(), RepositoryError> {
        delta::write(&mut self.session, self.revision, changed).await?;
        rules::prune_changes(&mut self.session, self.revision).await?;
        if let Session::Postgres(_) = self.session {
            let notify = Statement::new(listener::NOTIFY).bind(listener::RULES).bind("");
            self.session.execute(notify).await?;
        }
        self.session.commit().await?;
        // The number of rules is the same at the next revision.
        if let Some(total) = self.rules.get(Revision(self.revision.0 - 1)) {
            self.rules.set(self.revision, total);
        }
        Ok(())
    }
}

/// Deletes the overrides of deleted rules, in the transaction of the deletion.
pub(crate) async fn delete_of_rules(
    session: &mut Session,
    revision: Revision,
    rules: &[RuleId],
) -> Result<(), RepositoryError> {
    let ids: Vec<String> = rules.iter().map(RuleId::to_string).collect();
    // Cannot fail: a list of texts that is written to memory.
    let ids = serde_json::to_string(&ids).unwrap_or_default();
    let delete = Statement::either(DELETE_OF_RULES.0, DELETE_OF_RULES.1).bind(&*ids);
    let deleted = session.rows(delete).await?;
    let deleted = deleted.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    Ok(delta::write(session, revision, &deleted).await?)
}

fn id(row: &Row) -> Result<OverrideId, RepositoryError> {
    Ok(OverrideId::from(row.id("id").map_err(Outage::Sql)?))
}
