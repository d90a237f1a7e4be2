//! Errors of managing rules.

use headgate_ratelimit::{FieldError, RepositoryError, usecase::ManageError};

use super::{ApiError, Detail};

/// Most invalid fields of a list in one response.
const MAX_DETAILS: usize = 100;

impl From<RepositoryError> for ApiError {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::NotFound(id) => Self::NoSuchRule(id.to_string()),
            RepositoryError::Exists { .. } => Self::RuleExists(error.to_string()),
            RepositoryError::TooManyWindows { .. } => {
                Self::Invalid(vec![Detail::new("window_seconds", "too_many", error.to_string())])
            }
            RepositoryError::TooManyRules { .. } => Self::TooManyRules(error.to_string()),
            RepositoryError::NoSuchOverride(id) => Self::NoSuchOverride(id.to_string()),
            RepositoryError::TooManyOverrides => Self::TooManyOverrides(error.to_string()),
            RepositoryError::Changed(_) => Self::RuleChanged(error.to_string()),
            RepositoryError::RulesChanged { .. } => Self::RulesChanged(error.to_string()),
            RepositoryError::Unavailable(_) => Self::NoDatabase(error.to_string()),
            RepositoryError::Corrupt(_) => Self::Internal(error.to_string()),
        }
    }
}

impl From<ManageError> for ApiError {
    fn from(error: ManageError) -> Self {
        let message = error.to_string();
        let details = match error {
            ManageError::Repository(error) => return error.into(),
            ManageError::Invalid(errors) => errors.into_iter().map(Detail::from).collect(),
            ManageError::InvalidAt(errors) => of_list(errors),
            ManageError::Duplicate(..) => vec![Detail::new("rules", "duplicate", message)],
        };
        Self::Invalid(details)
    }
}

/// The invalid fields with their places in the list; the first ones if there are too many.
fn of_list(errors: Vec<(usize, FieldError)>) -> Vec<Detail> {
    let all = errors.len();
    let listed = if all > MAX_DETAILS { MAX_DETAILS - 1 } else { all };
    let within = |(index, error)| Detail::from(error).within("rules", index);
    let mut details: Vec<Detail> = errors.into_iter().take(listed).map(within).collect();
    if listed < all {
        let message = format!("{} more fields of rules are invalid", all - listed);
        details.push(Detail::new("rules", "more", message));
    }
    details
}
