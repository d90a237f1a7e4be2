//! Makes, changes and removes rules.

mod plan;

use std::sync::Arc;

use headgate::Timestamp;
use thiserror::Error;

pub use self::plan::Plan;
use crate::{
    Author, Catalog, Draft, FieldError, Listed, Page, RateLimitRule, RateLimitRuleRepository,
    RepositoryError, Revision, RuleChange, RuleFilter, RuleId,
};

/// Manages the rules that a repository keeps. A change is in force here before it is answered.
#[derive(Clone)]
pub struct ManageRules {
    catalog: Arc<Catalog>,
    repository: Arc<dyn RateLimitRuleRepository>,
}

/// Why nothing was changed.
#[derive(Clone, Debug, Error)]
pub enum ManageError {
    /// What was asked for is no rule.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// Some of a list are no rules: what is wrong, and with which of them, from 0.
    #[error("validation failed")]
    InvalidAt(Vec<(usize, FieldError)>),
    /// The list contradicts itself.
    #[error("{0} with a window of {1} seconds stands twice in the list")]
    Twice(String, u32),
    /// The repository refused, or cannot be reached.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl ManageRules {
    /// Manages the rules of `repository`, and puts them in force in `catalog`.
    pub fn new(catalog: Arc<Catalog>, repository: Arc<dyn RateLimitRuleRepository>) -> Self {
        Self { catalog, repository }
    }

    /// The most rules that there may be.
    pub fn max_rules(&self) -> u64 {
        self.repository.max_rules()
    }

    /// One page of the rules, and the revision that they are of.
    pub async fn list(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<(Revision, Listed<RateLimitRule>), ManageError> {
        Ok(self.repository.list(filter, page).await?)
    }

    /// The rule with this id.
    pub async fn get(&self, id: RuleId) -> Result<RateLimitRule, ManageError> {
        let rule = self.repository.get(id).await?;
        Ok(rule.ok_or(RepositoryError::NotFound(id))?)
    }

    /// Makes a rule.
    pub async fn create(&self, draft: Draft, by: &Author) -> Result<RateLimitRule, ManageError> {
        let spec = draft.validate(None).map_err(ManageError::Invalid)?;
        self.write_one(RuleChange::Create(spec), by).await
    }

    /// Changes what a rule says.
    pub async fn update(
        &self,
        id: RuleId,
        draft: Draft,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        let present = self.get(id).await?;
        let spec = draft.validate(Some(&present.spec)).map_err(ManageError::Invalid)?;
        self.write_one(RuleChange::Update(id, spec), by).await
    }

    /// Changes what a rule says, unless somebody changed it after `seen`, its `updated_at`.
    pub async fn update_seen(
        &self,
        id: RuleId,
        draft: Draft,
        seen: Timestamp,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        let present = self.get(id).await?;
        let spec = draft.validate(Some(&present.spec)).map_err(ManageError::Invalid)?;
        self.write_one(RuleChange::UpdateSeen(id, spec, seen), by).await
    }

    /// Removes a rule; gives it back as it was.
    pub async fn delete(&self, id: RuleId, by: &Author) -> Result<RateLimitRule, ManageError> {
        self.write_one(RuleChange::Delete(id), by).await
    }

    /// What would have to change so that the rules are those of `drafts`; rules that are not
    /// among them stay unless they are to be pruned.
    pub async fn plan(&self, drafts: Vec<Draft>, prune: bool) -> Result<Plan, ManageError> {
        let max = self.max_rules();
        let (revision, present) = self.repository.load().await?;
        let plan = move || {
            let present_rules = present.len() as u64;
            let plan = Plan::new(revision, present, plan::validated(drafts)?, prune)?;
            plan.within(present_rules, max)
        };
        // There may be very many of them: nothing else waits until they are compared.
        let planned = tokio::task::spawn_blocking(plan).await;
        planned.map_err(RepositoryError::unavailable)?
    }

    /// Does what was planned, all or nothing; and nothing if the rules are not those that it was planned for any more.
    pub async fn carry_out(&self, plan: &Plan, by: &Author) -> Result<(), ManageError> {
        let changes = plan.changes();
        if !changes.is_empty() {
            self.repository.write_seen(&changes, plan.revision, by).await?;
            self.refresh().await;
        }
        Ok(())
    }

    async fn write_one(
        &self,
        change: RuleChange,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        let written = self.write(&[change], by).await?;
        let missing = || RepositoryError::Corrupt("a change was made and not given back".into());
        Ok(written.into_iter().next().ok_or_else(missing)?)
    }

    async fn write(
        &self,
        changes: &[RuleChange],
        by: &Author,
    ) -> Result<Vec<RateLimitRule>, ManageError> {
        let written = self.repository.write(changes, by).await?;
        self.refresh().await;
        Ok(written)
    }

    async fn refresh(&self) {
        // It is written whether or not it can be read back now; the catalog notes it if not.
        let _ = self.catalog.refresh(&*self.repository).await;
    }
}

impl std::fmt::Debug for ManageRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManageRules").finish_non_exhaustive()
    }
}
