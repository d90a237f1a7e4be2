//! Creates, updates and deletes rules.

mod list;
mod plan;

use std::sync::Arc;

use headgate::Timestamp;
use thiserror::Error;

pub use self::{list::RuleList, plan::Plan};
use crate::{
    Author, Catalog, Draft, FieldError, Listed, Page, RateLimitRule, RateLimitRuleRepository,
    RepositoryError, Revision, RuleChange, RuleFilter, RuleId, RuleSpec, Warning,
    selector::RegexBudget,
};

/// Manages the rules of a repository. A change takes effect on this server before the call returns.
#[derive(Clone)]
pub struct ManageRules {
    catalog: Arc<Catalog>,
    repository: Arc<dyn RateLimitRuleRepository>,
}

/// An error of a change of rules.
#[derive(Clone, Debug, Error)]
pub enum ManageError {
    /// The rule is invalid.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// Rules of a list are invalid: indexes from 0, and errors.
    #[error("validation failed")]
    InvalidAt(Vec<(usize, FieldError)>),
    /// Two rules of a list have the same scope, pattern and window.
    #[error("duplicate rule in the list: {0} with a window of {1} seconds")]
    Duplicate(String, u32),
    /// The repository rejected the change or is unavailable.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl ManageRules {
    /// Creates the use case; changes refresh `catalog`.
    pub fn new(catalog: Arc<Catalog>, repository: Arc<dyn RateLimitRuleRepository>) -> Self {
        Self { catalog, repository }
    }

    /// Returns the maximum number of rules.
    pub fn max_rules(&self) -> u64 {
        self.repository.max_rules()
    }

    /// Returns a page of the rules and their revision.
    pub async fn list(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<(Revision, Listed<RateLimitRule>), ManageError> {
        Ok(self.repository.list(filter, page).await?)
    }

    /// Returns the rule with this id.
    pub async fn get(&self, id: RuleId) -> Result<RateLimitRule, ManageError> {
        let rule = self.repository.get(id).await?;
        Ok(rule.ok_or(RepositoryError::NotFound(id))?)
    }

    /// Creates a rule.
    pub async fn create(&self, draft: Draft, by: &Author) -> Result<RateLimitRule, ManageError> {
        let spec = draft.validate(None).map_err(ManageError::Invalid)?;
        self.check_regexes(&spec)?;
        self.write_one(RuleChange::Create(spec), by).await
    }

    /// Updates a rule.
    pub async fn update(
        &self,
        id: RuleId,
        draft: Draft,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        let current = self.get(id).await?;
        let spec = draft.validate(Some(&current.spec)).map_err(ManageError::Invalid)?;
        self.check_regexes(&spec)?;
        self.write_one(RuleChange::Update(id, spec), by).await
    }

    /// Updates a rule, on condition that its `updated_at` is still `expected`.
    pub async fn update_if_unchanged(
        &self,
        id: RuleId,
        draft: Draft,
        expected: Timestamp,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        let current = self.get(id).await?;
        let spec = draft.validate(Some(&current.spec)).map_err(ManageError::Invalid)?;
        self.check_regexes(&spec)?;
        self.write_one(RuleChange::UpdateIfUnchanged(id, spec, expected), by).await
    }

    /// Returns warnings about a rule: what it never does, or does too often.
    pub fn warnings(&self, rule: &RateLimitRule) -> Vec<Warning> {
        let snapshot = self.catalog.load();
        let mut warnings = rule.spec.warnings();
        if rule.spec.selector.is_some() {
            let others = snapshot.with_selector().filter_map(|other| other.rule());
            let mut others = others.filter(|other| other.id != rule.id);
            warnings.extend(others.find_map(|other| rule.spec.shadowed_by(other)));
        }
        warnings
    }

    /// Deletes a rule and returns it.
    pub async fn delete(&self, id: RuleId, by: &Author) -> Result<RateLimitRule, ManageError> {
        self.write_one(RuleChange::Delete(id), by).await
    }

    /// Deletes a rule, on condition that its `updated_at` is still `expected`.
    pub async fn delete_if_unchanged(
        &self,
        id: RuleId,
        expected: Timestamp,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        self.write_one(RuleChange::DeleteIfUnchanged(id, expected), by).await
    }

    /// Computes the changes that make the rules those that `fill` adds to a list. Rules that are
    /// not among them are kept, unless `prune` is set.
    pub async fn plan<E: From<ManageError> + Send + 'static>(
        &self,
        fill: impl FnOnce(&mut RuleList) -> Result<(), E> + Send + 'static,
        prune: bool,
    ) -> Result<Plan, E> {
        let max = self.max_rules();
        let (revision, present) = self.repository.load().await.map_err(ManageError::from)?;
        let plan = move || {
            let present_rules = present.len() as u64;
            let kept = if prune { &[][..] } else { &present };
            let mut list = RuleList::new(RegexBudget::with(kept.iter().map(|rule| &rule.spec)));
            fill(&mut list)?;
            let plan = Plan::new(revision, present, list.finish()?, prune)?;
            Ok(plan.within(present_rules, max)?)
        };
        // Comparing many rules takes long: do not delay other tasks.
        let planned = tokio::task::spawn_blocking(plan).await;
        planned.map_err(|error| ManageError::from(RepositoryError::unavailable(error)))?
    }

    /// Applies a plan as a whole, on condition that the rules have not changed since it was
    /// computed.
    pub async fn apply(&self, plan: &Plan, by: &Author) -> Result<(), ManageError> {
        let changes = plan.changes();
        if !changes.is_empty() {
            self.repository.write_if_unchanged(&changes, plan.revision, by).await?;
            self.refresh().await;
        }
        Ok(())
    }

    /// Refuses a rule with too much memory for regular expressions, together with the others.
    fn check_regexes(&self, spec: &RuleSpec) -> Result<(), ManageError> {
        if spec.selector.as_ref().is_none_or(|selector| selector.regexes().next().is_none()) {
            return Ok(());
        }
        let snapshot = self.catalog.load();
        let others = snapshot.with_selector().filter_map(|rule| rule.rule());
        let mut budget = RegexBudget::with(others.map(|rule| &rule.spec));
        budget.add(spec).map_err(|error| ManageError::Invalid(vec![error]))
    }

    async fn write_one(
        &self,
        change: RuleChange,
        by: &Author,
    ) -> Result<RateLimitRule, ManageError> {
        let written = self.write(&[change], by).await?;
        let missing =
            || RepositoryError::Corrupt("the repository did not return the changed rule".into());
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
        // The write succeeded even if this fails; the catalog records the error.
        let _ = self.catalog.refresh(&*self.repository).await;
    }
}

impl std::fmt::Debug for ManageRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManageRules").finish_non_exhaustive()
    }
}
