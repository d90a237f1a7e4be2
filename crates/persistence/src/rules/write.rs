//! Changes of the rules: all of one call are made, recorded and followed by a revision, or none.

use std::collections::{HashMap, HashSet};

use headgate::Timestamp;
use headgate_ratelimit::{
    AuditEntry, Author, Pattern, RateLimitRule, RepositoryError, Revision, RuleChange, RuleId,
    RuleSpec, Scope,
};

use super::{find, read_revision, record};
use crate::{
    audit, listener, moment::Moment, outage::Outage, session::Session, statement::Statement,
};

/// Writers wait here for each other: revisions follow each other as the sets of rules do.
const NEXT_REVISION: &str = "
    UPDATE revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules'
    RETURNING revision";

/// No rule has a pattern with a brace.
const PARK: &str = "
    UPDATE rate_limit_rules SET identifier_pattern = '{' || CAST(id AS TEXT) WHERE id = $1";

const CREATE: &str = "
    INSERT INTO rate_limit_rules (id, name, scope, identifier_pattern, limit_count, window_secs,
        algorithm, burst, fail_mode, enabled, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

const UPDATE: &str = "
    UPDATE rate_limit_rules SET name = $2, scope = $3, identifier_pattern = $4, limit_count = $5,
        window_secs = $6, algorithm = $7, burst = $8, fail_mode = $9, enabled = $10,
        created_at = $11, updated_at = $12
    WHERE id = $1";

/// The constraint that asks for rules to differ.
const IDENTITY: &str = "rate_limit_rules_identity";

/// Whoever has more windows than may be.
const CROWDED: &str = "
    SELECT scope, identifier_pattern FROM rate_limit_rules
    GROUP BY scope, identifier_pattern HAVING count(*) > $1";

const DELETE: &str = "DELETE FROM rate_limit_rules WHERE id = $1";

/// Times are shown in milliseconds.
const SHOWN_TICK: u64 = 1_000;

/// Makes changes in one transaction.
pub(super) struct Writer<'a> {
    session: Session,
    author: &'a Author,
    now: Timestamp,
    /// The rules that the changes name, as they are by now.
    present: HashMap<RuleId, RateLimitRule>,
    /// Whom there are more rules about than before, unless others were taken away.
    grown: HashSet<(Scope, Pattern)>,
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Waits for its turn; by then the rules must be those of `seen`, if somebody has seen them.
    pub(super) async fn begin(
        mut session: Session,
        seen: Option<Revision>,
        author: &'a Author,
    ) -> Result<Self, RepositoryError> {
        let next = read_revision(session.row(Statement::new(NEXT_REVISION)).await?)?;
        let now = Revision(next.0 - 1);
        if let Some(seen) = seen.filter(|seen| *seen != now) {
            return Err(RepositoryError::Moved { seen, now });
        }
        let now = Moment::shown(author.at);
        Ok(Self { session, author, now, present: HashMap::new(), grown: HashSet::new() })
    }

    /// Looks up the rules that `changes` name.
    async fn look_up(&mut self, changes: &[RuleChange]) -> Result<(), RepositoryError> {
        for change in changes {
            if let RuleChange::Update(id, _)
            | RuleChange::UpdateSeen(id, _, _)
            | RuleChange::Delete(id) = change
            {
                let rule = find(&mut self.session, *id).await?;
                self.present.insert(*id, rule.ok_or(RepositoryError::NotFound(*id))?);
            }
        }
        Ok(())
    }

    /// Makes the changes in their order and gives the rules as they are then.
    pub(super) async fn write(
        mut self,
        changes: &[RuleChange],
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        self.look_up(changes).await?;
        if changes.len() > 1 {
            self.park().await?;
        }
        let mut rules = Vec::with_capacity(changes.len());
        for change in changes {
            rules.push(self.change(change).await?);
        }
        self.refuse_crowds().await?;
        if let Session::Postgres(_) = self.session {
            let notify = Statement::new(listener::NOTIFY).bind(listener::RULES).bind("");
            self.session.execute(notify).await?;
        }
        self.session.commit().await?;
        Ok(rules)
    }

    /// Takes the rules that change out of each other's way, so that two can swap what they are
    /// about: databases compare rules after every statement.
    async fn park(&mut self) -> Result<(), Outage> {
        for id in self.present.keys() {
            self.session.execute(Statement::new(PARK).bind(*id)).await?;
        }
        Ok(())
    }

    /// Looks at all rules as they are to be. Who was crowded before there was a bound may stay so.
    async fn refuse_crowds(&mut self) -> Result<(), RepositoryError> {
        if self.grown.is_empty() {
            return Ok(());
        }
        let most = RateLimitRule::MAX_WINDOWS as i64;
        for row in self.session.rows(Statement::new(CROWDED).bind(most)).await? {
            let text = |column| row.get::<String>(column).map_err(Outage::Sql);
            let (scope, pattern) = (text("scope")?, text("identifier_pattern")?);
            let is_crowd = |(of, about): &&(Scope, Pattern)| {
                of.name() == scope && about.to_string() == pattern
            };
            if let Some((scope, pattern)) = self.grown.iter().find(is_crowd) {
                return Err(RepositoryError::Crowded { scope: *scope, pattern: pattern.clone() });
            }
        }
        Ok(())
    }

    /// Notes that a rule comes to those that `spec` is about.
    fn grows(&mut self, spec: &RuleSpec) {
        self.grown.insert((spec.scope, spec.identifier_pattern.clone()));
    }

    async fn change(&mut self, change: &RuleChange) -> Result<RateLimitRule, RepositoryError> {
        match change {
            RuleChange::Create(spec) => self.create(spec).await,
            // No other writer is between the look and the change: they wait for the revision.
            RuleChange::UpdateSeen(id, _, seen) if !self.is_as_seen(*id, *seen) => {
                Err(RepositoryError::Changed(*id))
            }
            RuleChange::Update(id, spec) | RuleChange::UpdateSeen(id, spec, _) => {
                self.update(*id, spec).await
            }
            RuleChange::Delete(id) => self.delete(*id).await,
        }
    }

    async fn create(&mut self, spec: &RuleSpec) -> Result<RateLimitRule, RepositoryError> {
        let (id, now) = (RuleId::random(), self.now);
        let rule = RateLimitRule { id, spec: spec.clone(), created_at: now, updated_at: now };
        self.put(CREATE, &rule).await?;
        self.grows(spec);
        self.record("rule.create", id, None, Some(spec)).await?;
        Ok(rule)
    }

    async fn update(
        &mut self,
        id: RuleId,
        spec: &RuleSpec,
    ) -> Result<RateLimitRule, RepositoryError> {
        let before = self.take(id)?;
        // Another replica's clock may be ahead; and no two states of a rule have the same time.
        let updated_at = self.now.max(before.updated_at.plus(SHOWN_TICK));
        let rule = RateLimitRule { spec: spec.clone(), updated_at, ..before };
        self.put(UPDATE, &rule).await?;
        if before.spec.key() != spec.key() {
            self.grows(spec);
        }
        self.record("rule.update", id, Some(&before.spec), Some(spec)).await?;
        self.present.insert(id, rule.clone());
        Ok(rule)
    }

    async fn delete(&mut self, id: RuleId) -> Result<RateLimitRule, RepositoryError> {
        let before = self.take(id)?;
        self.session.execute(Statement::new(DELETE).bind(id)).await?;
        self.record("rule.delete", id, Some(&before.spec), None).await?;
        Ok(before)
    }

    /// Whether the rule was last changed at `seen`; one that is gone is for others to find out.
    fn is_as_seen(&self, id: RuleId, seen: Timestamp) -> bool {
        self.present.get(&id).is_none_or(|rule| rule.updated_at == seen)
    }

    /// The rule as it is by now; an earlier change may have deleted it.
    fn take(&mut self, id: RuleId) -> Result<RateLimitRule, RepositoryError> {
        self.present.remove(&id).ok_or(RepositoryError::NotFound(id))
    }

    async fn put(
        &mut self,
        sql: &'static str,
        rule: &RateLimitRule,
    ) -> Result<(), RepositoryError> {
        let put = self.session.execute(record::bind(Statement::new(sql), rule)).await;
        put.map_err(
            |outage| if outage.is_twin(IDENTITY) { exists(&rule.spec) } else { outage.into() },
        )
    }

    async fn record(
        &mut self,
        action: &str,
        id: RuleId,
        before: Option<&RuleSpec>,
        after: Option<&RuleSpec>,
    ) -> Result<(), Outage> {
        let entry = AuditEntry {
            // The record gives it another.
            id: 0,
            author: self.author.clone(),
            action: action.to_owned(),
            target: id.to_string(),
            before: before.map(record::to_json),
            after: after.map(record::to_json),
            reason: None,
        };
        audit::add(&mut self.session, &entry).await
    }
}

fn exists(spec: &RuleSpec) -> RepositoryError {
    let (scope, pattern, window_seconds) = spec.identity();
    RepositoryError::Exists { scope, pattern: pattern.clone(), window_seconds }
}
