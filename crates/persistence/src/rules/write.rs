//! Changes of the rules: all of one call are made, recorded and followed by a revision, or none.

use headgate::Timestamp;
use headgate_ratelimit::{
    AuditEntry, Author, RateLimitRule, RepositoryError, Revision, RuleChange, RuleId, RuleSpec,
};

use super::{
    CHUNK,
    batch::{self, Identity, Words},
    delta, find_all, read_revision,
    record::{self, WireRule},
    steps::{Step, Steps},
    total::KnownTotal,
};
use crate::{
    audit, listener, moment::Moment, outage::Outage, session::Session, statement::Statement,
};

/// Writers wait here for each other: revisions follow each other as the sets of rules do.
const NEXT_REVISION: &str = "
    UPDATE revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules'
    RETURNING revision";

/// The constraint that asks for rules to differ.
const IDENTITY: &str = "rate_limit_rules_identity";

/// Makes changes in one transaction.
pub(super) struct Writer<'a> {
    session: Session,
    author: &'a Author,
    now: Timestamp,
    /// The revision that the changes make.
    revision: Revision,
    total: &'a KnownTotal,
    max_rules: u64,
}

// === impl Writer ===

impl<'a> Writer<'a> {
    /// Waits for its turn; by then the rules must be those of `seen`, if somebody has seen them.
    pub(super) async fn begin(
        mut session: Session,
        seen: Option<Revision>,
        author: &'a Author,
        (total, max_rules): (&'a KnownTotal, u64),
    ) -> Result<Self, RepositoryError> {
        let revision = read_revision(session.row(Statement::new(NEXT_REVISION)).await?)?;
        let now = Revision(revision.0 - 1);
        if let Some(seen) = seen.filter(|seen| *seen != now) {
            return Err(RepositoryError::RulesChanged { expected: seen, actual: now });
        }
        let now = Moment::shown(author.at);
        Ok(Self { session, author, now, revision, total, max_rules })
    }

    /// Makes the changes in their order and gives the rules as they are then.
    pub(super) async fn write(
        mut self,
        changes: &[RuleChange],
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        let present = find_all(&mut self.session, &named(changes)).await?;
        let mut steps = Steps::new(present, self.now);
        let mut rules = Vec::with_capacity(changes.len());
        for change in changes {
            rules.push(steps.take(change)?);
        }
        let total = self.room(&steps).await?;
        self.make(&steps, changes.len()).await?;
        self.record(steps.taken()).await?;
        delta::write(&mut self.session, self.revision, &steps.touched()).await?;
        if let Session::Postgres(_) = self.session {
            let notify = Statement::new(listener::NOTIFY).bind(listener::RULES).bind("");
            self.session.execute(notify).await?;
        }
        self.session.commit().await?;
        if let Some(total) = total {
            self.total.note(self.revision, total);
        }
        Ok(rules)
    }

    /// Refuses rules beyond the most that may be; gives the number that there will be, if it is
    /// known.
    async fn room(&mut self, steps: &Steps) -> Result<Option<u64>, RepositoryError> {
        let (created, deleted) = (steps.created().len() as u64, steps.deleted().len() as u64);
        let before = Revision(self.revision.0 - 1);
        let present = if created > deleted {
            Some(self.total.at(before, &mut self.session).await?)
        } else {
            self.total.known(before)
        };
        let total = present.map(|present| (present + created).saturating_sub(deleted));
        if created > deleted && total > Some(self.max_rules) {
            return Err(RepositoryError::TooManyRules { max: self.max_rules });
        }
        Ok(total)
    }

    /// Makes what comes of all steps.
    async fn make(&mut self, steps: &Steps, changes: usize) -> Result<(), RepositoryError> {
        for gone in steps.deleted().chunks(CHUNK) {
            self.session.execute(batch::statement(batch::DELETE, &batch::ids(gone))).await?;
        }
        let updated = steps.updated();
        if changes > 1 {
            // Out of each other's way, so that two can swap what they are about: databases compare
            // rules after every statement.
            for parked in updated.chunks(CHUNK) {
                let ids: Vec<RuleId> = parked.iter().map(|rule| rule.id).collect();
                self.session.execute(batch::statement(batch::PARK, &batch::ids(&ids))).await?;
            }
        }
        if let Some(twin) = steps.twin() {
            return Err(exists(twin));
        }
        self.refuse_twins(&steps.arriving()).await?;
        self.put(batch::UPDATE, &updated).await?;
        self.put(batch::CREATE, steps.created()).await?;
        self.refuse_crowds(&steps.growing()).await
    }

    /// Refuses rules that are there already. Nobody else writes meanwhile.
    async fn refuse_twins(&mut self, arriving: &[&RuleSpec]) -> Result<(), RepositoryError> {
        for chunk in arriving.chunks(CHUNK) {
            let identities: Vec<Identity> =
                chunk.iter().map(|spec| Identity::from(*spec)).collect();
            let twin = self.session.row(batch::statement(batch::TWINS, &identities)).await?;
            let Some(twin) = twin else { continue };
            let pattern: String = twin.get("identifier_pattern").map_err(Outage::Sql)?;
            let window: i64 = twin.get("window_secs").map_err(Outage::Sql)?;
            let is_twin = |spec: &&&RuleSpec| {
                spec.identifier_pattern.to_string() == pattern
                    && i64::from(spec.window_seconds) == window
            };
            return Err(exists(chunk.iter().find(is_twin).unwrap_or(&chunk[0])));
        }
        Ok(())
    }

    /// Looks at the rules as they are to be. Who was crowded before there was a bound may stay so.
    async fn refuse_crowds(&mut self, arriving: &[&RuleSpec]) -> Result<(), RepositoryError> {
        let most = RateLimitRule::MAX_WINDOWS as i64;
        for chunk in arriving.chunks(CHUNK) {
            let identities: Vec<Identity> =
                chunk.iter().map(|spec| Identity::from(*spec)).collect();
            let crowded = batch::statement(batch::CROWDED, &identities).bind(most);
            let Some(crowd) = self.session.row(crowded).await? else { continue };
            let pattern: String = crowd.get("identifier_pattern").map_err(Outage::Sql)?;
            let is_crowd = |spec: &&&RuleSpec| spec.identifier_pattern.to_string() == pattern;
            let (scope, pattern, _) = chunk.iter().find(is_crowd).unwrap_or(&chunk[0]).identity();
            return Err(RepositoryError::TooManyWindows { scope, pattern: pattern.clone() });
        }
        Ok(())
    }

    async fn put(&mut self, words: Words, rules: &[RateLimitRule]) -> Result<(), RepositoryError> {
        for chunk in rules.chunks(CHUNK) {
            let rows: Vec<WireRule<'_>> = chunk.iter().map(WireRule::from).collect();
            let put = self.session.execute(batch::statement(words, &rows)).await;
            // Somebody with a console does not wait for us.
            put.map_err(|outage| {
                if outage.is_twin(IDENTITY) { exists(&chunk[0].spec) } else { outage.into() }
            })?;
        }
        Ok(())
    }

    async fn record(&mut self, steps: &[Step]) -> Result<(), Outage> {
        for chunk in steps.chunks(CHUNK) {
            let entry = |step: &Step| AuditEntry {
                // The record gives it another.
                id: 0,
                author: self.author.clone(),
                action: step.action().to_owned(),
                target: step.id.to_string(),
                before: step.before.as_ref().map(record::to_json),
                after: step.after.as_ref().map(record::to_json),
                reason: None,
            };
            let entries: Vec<AuditEntry> = chunk.iter().map(entry).collect();
            audit::add_all(&mut self.session, self.author, &entries).await?;
        }
        Ok(())
    }
}

/// The rules that changes are about, if they must be there.
fn named(changes: &[RuleChange]) -> Vec<RuleId> {
    let id = |change: &RuleChange| match change {
        RuleChange::Create(_) => None,
        RuleChange::Update(id, _)
        | RuleChange::UpdateIfUnchanged(id, ..)
        | RuleChange::Delete(id) => Some(*id),
    };
    changes.iter().filter_map(id).collect()
}

fn exists(spec: &RuleSpec) -> RepositoryError {
    let (scope, pattern, window_seconds) = spec.identity();
    RepositoryError::Exists { scope, pattern: pattern.clone(), window_seconds }
}
