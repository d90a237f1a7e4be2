//! Sets, lists and deletes overrides.

use std::sync::Arc;

use headgate::LimitError;

use super::rules::ManageError;
use crate::{
    Author, Catalog, FieldError, Listed, OverrideDraft, OverrideFilter, OverrideId,
    OverrideRepository, OverrideSpec, Page, RateLimitRule, RateLimitRuleRepository,
    RepositoryError, RuleOverride, Warning,
};

/// Manages the overrides of a repository. A change takes effect on this server before the call
/// returns.
#[derive(Clone)]
pub struct ManageOverrides {
    catalog: Arc<Catalog>,
    rules: Arc<dyn RateLimitRuleRepository>,
    overrides: Arc<dyn OverrideRepository>,
}

/// Maximum number of sets of attributes that the overrides of one rule name, which bounds the
/// look-ups of a check.
const MAX_SHAPES: usize = 8;

impl ManageOverrides {
    /// Creates the use case; changes refresh `catalog`.
    pub fn new(
        catalog: Arc<Catalog>,
        rules: Arc<dyn RateLimitRuleRepository>,
        overrides: Arc<dyn OverrideRepository>,
    ) -> Self {
        Self { catalog, rules, overrides }
    }

    /// Returns a page of the overrides.
    pub async fn list(
        &self,
        filter: &OverrideFilter,
        page: Page,
    ) -> Result<Listed<RuleOverride>, ManageError> {
        Ok(self.overrides.list_overrides(filter, page).await?)
    }

    /// Returns the override with this id.
    pub async fn get(&self, id: OverrideId) -> Result<RuleOverride, ManageError> {
        let found = self.overrides.get_override(id).await?;
        Ok(found.ok_or(RepositoryError::NoSuchOverride(id))?)
    }

    /// Creates an override, or replaces the one of the same rule and subject. The flag is `true` if
    /// it is new.
    pub async fn set(
        &self,
        draft: OverrideDraft,
        by: &Author,
    ) -> Result<(RuleOverride, bool), ManageError> {
        let spec = draft.validate(Some(by.at)).map_err(ManageError::Invalid)?;
        let rule = self.rules.get(spec.rule).await?;
        let rule = rule.ok_or(RepositoryError::NotFound(spec.rule))?;
        self.check(&rule, &spec).map_err(ManageError::Invalid)?;
        let set = self.overrides.set_override(&spec, by).await?;
        self.refresh().await;
        Ok(set)
    }

    /// Deletes an override and returns it.
    pub async fn delete(&self, id: OverrideId, by: &Author) -> Result<RuleOverride, ManageError> {
        let deleted = self.overrides.delete_override(id, by).await?;
        self.refresh().await;
        Ok(deleted)
    }

    /// Validates an override against its rule.
    fn check(&self, rule: &RateLimitRule, spec: &OverrideSpec) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut add = |field, reason, message| errors.push(FieldError { field, reason, message });
        if let Err(error @ LimitError::TooLarge { .. }) = rule.spec.engine_limit_of(spec.limit) {
            add("limit", "too_large", error.to_string());
        }
        let scope = rule.spec.scope.name();
        if rule.spec.selector.is_none() {
            match spec.subject.iter().collect::<Vec<_>>()[..] {
                [(name, value)] if name == scope => {
                    if !rule.spec.identifier_pattern.matches(value) {
                        let pattern = &rule.spec.identifier_pattern;
                        let message =
                            format!("subject does not match the rule's pattern {pattern}");
                        add("subject", "invalid", message);
                    }
                }
                _ => {
                    let message =
                        format!("subject of this rule must have the attribute {scope} only");
                    add("subject", "invalid", message);
                }
            }
        }
        let names = spec.subject.names();
        let snapshot = self.catalog.load();
        let mut others = snapshot.override_shapes(spec.rule).filter(|known| **known != *names);
        if others.nth(MAX_SHAPES - 1).is_some() {
            let message = format!(
                "the overrides of a rule may name at most {MAX_SHAPES} different sets of attributes"
            );
            add("subject", "too_many", message);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Returns warnings about an override of a rule.
    pub fn warnings(&self, set: &RuleOverride) -> Vec<Warning> {
        let snapshot = self.catalog.load();
        let rule = snapshot.rule(set.spec.rule).and_then(|rule| rule.rule());
        rule.map(|rule| set.spec.warnings(&rule.spec)).unwrap_or_default()
    }

    async fn refresh(&self) {
        // The write succeeded even if this fails; the catalog records the error.
        let _ = self.catalog.refresh(&*self.rules).await;
    }
}

impl std::fmt::Debug for ManageOverrides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManageOverrides").finish_non_exhaustive()
    }
}
