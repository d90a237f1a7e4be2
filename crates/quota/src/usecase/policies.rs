//! Makes, changes and removes policies.

use headgate_admin::{Author, FieldError, Listed, Page};
use thiserror::Error;

use crate::{
    Draft, PolicyChange, PolicyFilter, QuotaId, QuotaPolicy, QuotaSpec, Quotas, RepositoryError,
};

/// Manages the policies that a repository keeps. A change is in force here before it is answered.
#[derive(Clone, Debug)]
pub struct ManagePolicies {
    quotas: Quotas,
    recorded: bool,
}

/// Why nothing was changed.
#[derive(Clone, Debug, Error)]
pub enum ManageError {
    /// What was asked for is no policy.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// The repository refused, or cannot be reached.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

/// How often a change is tried that somebody else's changes get in the way of.
const TRIES: usize = 5;

impl ManagePolicies {
    /// Manages the policies of `quotas`.
    pub fn new(quotas: &Quotas) -> Self {
        Self { quotas: quotas.clone(), recorded: true }
    }

    /// The same for policies that a program makes by itself: the audit log does not tell of them.
    #[must_use]
    pub fn unrecorded(self) -> Self {
        Self { recorded: false, ..self }
    }

    /// One page of the policies.
    pub async fn list(
        &self,
        filter: &PolicyFilter,
        page: Page,
    ) -> Result<Listed<QuotaPolicy>, ManageError> {
        Ok(self.quotas.repository.list(filter, page).await?)
    }

    /// The policy with this id.
    pub async fn get(&self, id: &QuotaId) -> Result<QuotaPolicy, ManageError> {
        let policy = self.quotas.repository.get(id).await?;
        Ok(policy.ok_or_else(|| RepositoryError::NotFound(id.clone()))?)
    }

    /// Makes a policy.
    pub async fn create(&self, draft: Draft, by: &Author) -> Result<QuotaPolicy, ManageError> {
        let spec = draft.validate(None).map_err(ManageError::Invalid)?;
        self.write(&PolicyChange::Create(spec), by).await
    }

    /// Changes what a policy says: optional fields that were left out stay as they are.
    pub async fn replace(
        &self,
        id: &QuotaId,
        draft: &Draft,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        self.change(id, by, |present| draft.clone().validate(Some(present))).await
    }

    /// Changes only what was sent of a policy.
    pub async fn amend(
        &self,
        id: &QuotaId,
        draft: &Draft,
        by: &Author,
    ) -> Result<QuotaPolicy, ManageError> {
        self.change(id, by, |present| draft.clone().amend(present)).await
    }

    /// Removes a policy; gives it back as it was. What was used of it stays in the ledger, and
    /// its subject can have another policy at once.
    pub async fn delete(&self, id: &QuotaId, by: &Author) -> Result<QuotaPolicy, ManageError> {
        let active = self.quotas.catalog.load(id);
        let deleted = self.write(&PolicyChange::Delete(id.clone()), by).await?;
        if let Some(active) = active {
            // A counter that stays goes away with its period.
            let _ = self.quotas.counter.forget(&active, &active.span(self.quotas.now())).await;
        }
        Ok(deleted)
    }

    async fn change(
        &self,
        id: &QuotaId,
        by: &Author,
        next: impl Fn(&QuotaSpec) -> Result<QuotaSpec, Vec<FieldError>>,
    ) -> Result<QuotaPolicy, ManageError> {
        let mut tries = 0;
        loop {
            let from = self.get(id).await?.spec;
            let to = next(&from).map_err(ManageError::Invalid)?;
            let update = PolicyChange::Update { id: id.clone(), from, to };
            match self.write(&update, by).await {
                Err(ManageError::Repository(RepositoryError::Changed(_))) if tries < TRIES => {
                    tries += 1;
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
        // It is written whether or not it can be read back now; the catalog notes it if not.
        let _ = self.quotas.catalog.refresh().await;
        self.quotas.known.forget(&written.id);
        Ok(written)
    }
}
