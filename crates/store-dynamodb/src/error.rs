//! Errors of DynamoDB, and which of them are retried.

use std::error::Error as StdError;

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::transact_write_items::TransactWriteItemsError,
    types::CancellationReason,
};
use headgate::StoreError;
use thiserror::Error;

/// Error of DynamoDB.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynamoDbError {
    /// DynamoDB cannot be reached, or the connection was lost.
    #[error("DynamoDB cannot be reached: {0}")]
    Unreachable(String),
    /// DynamoDB responded with an error.
    #[error("DynamoDB rejected the request: {code}: {message}")]
    Refused {
        /// Error code.
        code: String,
        /// Error message.
        message: String,
    },
    /// DynamoDB throttled all attempts.
    #[error("throttled by DynamoDB: {0}")]
    Throttled(String),
    /// The table exists with another schema.
    #[error("table {table:?} has another schema: {reason}")]
    Table {
        /// Name of the table.
        table: String,
        /// The difference.
        reason: &'static str,
    },
}

/// Error of one attempt.
#[derive(Debug)]
pub(crate) enum AttemptError {
    /// Another client changed a key first: nothing was written.
    Contended,
    /// Throttled: nothing was written.
    Throttled(String),
    /// A retry would fail again, or could count twice.
    Permanent(StoreError),
}

// === impl AttemptError ===

impl AttemptError {
    pub(crate) fn of<E>(error: &SdkError<E>) -> Self
    where
        E: ProvideErrorMetadata + StdError + 'static,
    {
        match error.code() {
            Some(
                "ConditionalCheckFailedException"
                | "ReplicatedWriteConflictException"
                | "TransactionConflictException"
                | "TransactionInProgressException",
            ) => Self::Contended,
            Some(
                code @ ("ProvisionedThroughputExceededException"
                | "RequestLimitExceeded"
                | "ThrottlingException"),
            ) => Self::Throttled(code.to_owned()),
            _ => Self::Permanent(unavailable(error)),
        }
    }

    pub(crate) fn of_transaction(error: &SdkError<TransactWriteItemsError>) -> Self {
        match error.as_service_error() {
            Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) => {
                Self::of_reasons(cancelled.cancellation_reasons())
            }
            _ => Self::of(error),
        }
    }

    /// Classifies a cancelled transaction, which has a reason for each item.
    fn of_reasons(reasons: &[CancellationReason]) -> Self {
        let mut error = Self::Contended;
        for reason in reasons {
            match reason.code() {
                None | Some("None" | "ConditionalCheckFailed" | "TransactionConflict") => {}
                Some(code @ ("ProvisionedThroughputExceeded" | "ThrottlingError")) => {
                    error = Self::Throttled(code.to_owned());
                }
                Some(code) => {
                    let message = reason.message().unwrap_or_default().to_owned();
                    let refused = DynamoDbError::Refused { code: code.to_owned(), message };
                    return Self::Permanent(StoreError::unavailable(refused));
                }
            }
        }
        error
    }
}

impl From<StoreError> for AttemptError {
    fn from(error: StoreError) -> Self {
        Self::Permanent(error)
    }
}

/// An error that is not about a single key.
pub(crate) fn unavailable<E>(error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let Some(code) = error.code() else {
        let cause = headgate_tls_client::explain(error, "DynamoDB", "dynamodb")
            .map_or_else(|| innermost(error), |tls| format!("TLS: {tls}"));
        return StoreError::unavailable(DynamoDbError::Unreachable(cause));
    };
    let message = error.message().unwrap_or_default().to_owned();
    StoreError::unavailable(DynamoDbError::Refused { code: code.to_owned(), message })
}

/// The last cause in the chain: the others only name the operation.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(codes: &[&str]) -> AttemptError {
        let reason = |code: &&str| CancellationReason::builder().code(*code).build();
        AttemptError::of_reasons(&codes.iter().map(reason).collect::<Vec<_>>())
    }

    #[test]
    fn conflicting_transactions_are_retried_and_invalid_ones_are_not() {
        for reason in ["ConditionalCheckFailed", "TransactionConflict"] {
            assert!(matches!(of(&["None", reason]), AttemptError::Contended), "{reason}");
        }
        for reason in ["ThrottlingError", "ProvisionedThroughputExceeded"] {
            let error = of(&["ConditionalCheckFailed", reason]);
            assert!(matches!(error, AttemptError::Throttled(_)), "{reason}");
        }
        let error = of(&["ThrottlingError", "ValidationError", "None"]);
        assert!(matches!(error, AttemptError::Permanent(StoreError::Unavailable(_))), "{error:?}");
    }
}
