//! Creates, updates and deletes policies.

use headgate::Timestamp;
use headgate_admin::{Author, FieldError, Listed, Page};
use thiserror::Error;

use crate::{
    Draft, PolicyChange, PolicyFilter, QuotaId, QuotaPolicy, QuotaSpec, Quotas, RepositoryError,
};

/// Manages policies. A change takes effect on this server before the call returns.
#[derive(Clone, Debug)]
pub struct ManagePolicies {
    quotas: Quotas,
    recorded: bool,
}

/// An error of a change of policies.
#[derive(Clone, Debug, Error)]
pub enum ManageError {
    /// The policy is invalid.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// The policy has changed since the caller read it.
    #[error("quota policy has changed in the meantime: {0}")]
    Stale(QuotaId),
    /// The repository rejected the change or is unavailable.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

/// Maximum number of retries after concurrent changes.
const MAX_RETRIES: usize = 5;

impl ManagePolicies {
    /// Creates the use case.
    pub fn new(quotas: &Quotas) -> Self {
        Self { quotas: quotas.clone(), recorded: true }
    }

    /// Disables audit entries, for policies that a program creates by itself.
    #[must_use]
    pub fn unrecorded(self) -> Self {
        Self { recorded: false, ..self }
    }

    /// Returns a page of the policies.
    pub async fn list(
        &self,
        filter: &PolicyFilter,
        page: Page,
    ) -> Result<Listed<QuotaPolicy>, ManageError> {
        Ok(self.quotas.repository.list(filter, page).await?)
    }

    /// Returns the policy with this id.
    pub async fn get(&self, id: &QuotaId) -> Result<QuotaPolicy, ManageError> {
        let policy = self.quotas.repository.get(id).await?;
        Ok(policy.ok_or_else(|| RepositoryError::NotFound(id.clone()))?)
    }

    /// Creates a policy.
    pub async fn create(&self, draft: Draft, by: &Author) -> Result<QuotaPolicy, ManageError> {
        let spec = draft.validate(None).map_err(ManageError::Invalid)?;
        self.write(&PolicyChange::Create(spec), by).await
    }

    /// Updates a policy; optional fields that are missing keep their value.
    pub async fn replace(
        &self,
        id: &QuotaId,
        draft: &Draft,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        self.change(id, None, by, |current| draft.clone().validate(Some(current))).await
    }

    /// Updates a policy as [`replace`](Self::replace) does, on condition that its `updated_at` is
    /// still `expected`.
    pub async fn replace_if_unchanged(
        &self,
        id: &QuotaId,
        draft: &Draft,
        expected: Timestamp,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        self.change(id, Some(expected), by, |current| draft.clone().validate(Some(current))).await
    }

    /// Updates only the given fields of a policy.
    pub async fn amend(
        &self,
        id: &QuotaId,
        draft: &Draft,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        self.change(id, None, by, |current| draft.clone().amend(current)).await
    }

    /// Deletes a policy and returns it. Its usage stays in the ledger, and its subject can have
    /// another policy at once.
    pub async fn delete(&self, id: &QuotaId, by: &Author) -> Result<QuotaPolicy, ManageError> {
        self.remove(&PolicyChange::Delete(id.clone()), id, by).await
    }

    /// Deletes a policy, on condition that its `updated_at` is still `expected`.
    pub async fn delete_if_unchanged(
        &self,
        id: &QuotaId,
        expected: Timestamp,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        let deletion = PolicyChange::DeleteIfUnchanged(id.clone(), expected);
        self.remove(&deletion, id, by).await.map_err(|error| match error {
            ManageError::Repository(RepositoryError::Changed(id)) => ManageError::Stale(id),
            other => other,
        })
    }

    async fn remove(
        &self,
        deletion: &PolicyChange,
        id: &QuotaId,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        let active = self.quotas.catalog.load(id);
        let deleted = self.write(deletion, by).await?;
        if let Some(active) = active {
            // On failure, the counter expires with its period.
            let _ = self.quotas.counter.forget(&active, &active.span(self.quotas.now())).await;
        }
        Ok(deleted)
    }

    async fn change(
        &self,
        id: &QuotaId,
        expected: Option<Timestamp>,
        by: &Author,
        next: impl Fn(&QuotaSpec) -> Result<QuotaSpec, Vec<FieldError>>,
    ) -> Result<QuotaPolicy, ManageError> {
        let mut retries = 0;
        loop {
            let QuotaPolicy { spec: from, updated_at, .. } = self.get(id).await?;
            if expected.is_some_and(|expected| expected != updated_at) {
                return Err(ManageError::Stale(id.clone()));
            }
            let to = next(&from).map_err(ManageError::Invalid)?;
            let update = PolicyChange::Update { id: id.clone(), from, to };
            match self.write(&update, by).await {
                Err(ManageError::Repository(RepositoryError::Changed(_)))
                    if retries < MAX_RETRIES =>
                {
                    retries += 1;
                }
                done => return done,
            }
        }
    }

    async fn write(&self, change: &PolicyChange, by: &Author) -> Result<QuotaPolicy, ManageError> {
        let repository = &self.quotas.repository;
        let written = if self.recorded {
            repository.write(change, by).await?
        } else {
            repository.write_unrecorded(change, by.at).await?
        };
        // The write succeeded even if this fails; the catalog records the error.
        let _ = self.quotas.catalog.refresh().await;
        self.quotas.recent.remove(&written.id);
        Ok(written)
    }
}
