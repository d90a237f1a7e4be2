//! What DynamoDB's errors mean to a decision.

use std::error::Error as StdError;

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::transact_write_items::TransactWriteItemsError,
    types::CancellationReason,
};
use headgate::StoreError;
use thiserror::Error;

/// Why DynamoDB did not do what it was asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DynamoDbError {
    /// It cannot be reached, or went away during the call.
    #[error("DynamoDB cannot be reached: {0}")]
    Unreachable(String),
    /// It answered with an error of this code.
    #[error("DynamoDB refuses: {code}: {message}")]
    Refused {
        /// DynamoDB's name for it.
        code: String,
        /// And its explanation.
        message: String,
    },
    /// It has no capacity left for us, also after several tries.
    #[error("DynamoDB throttles: {0}")]
    Throttled(String),
    /// The table is there and is not ours.
    #[error("table {table:?} is not one for limits: {reason}")]
    Table {
        /// Its name.
        table: String,
        /// What is different.
        reason: &'static str,
    },
}

/// Why one try at a decision failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Somebody else changed a subject first: nothing was written.
    Contended,
    /// DynamoDB asks for patience: nothing was written.
    Throttled(String),
    /// Trying again does not help, or could count twice.
    Broken(StoreError),
}

// === impl Failure ===

impl Failure {
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
            _ => Self::Broken(unavailable(error)),
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

    /// A cancelled transaction says of each of its items why.
    fn of_reasons(reasons: &[CancellationReason]) -> Self {
        let mut failure = Self::Contended;
        for reason in reasons {
            match reason.code() {
                None | Some("None" | "ConditionalCheckFailed" | "TransactionConflict") => {}
                Some(code @ ("ProvisionedThroughputExceeded" | "ThrottlingError")) => {
                    failure = Self::Throttled(code.to_owned());
                }
                Some(code) => {
                    let message = reason.message().unwrap_or_default().to_owned();
                    let refused = DynamoDbError::Refused { code: code.to_owned(), message };
                    return Self::Broken(StoreError::unavailable(refused));
                }
            }
        }
        failure
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Broken(error)
    }
}

/// An error that says nothing about a single subject.
pub(crate) fn unavailable<E>(error: &SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let Some(code) = error.code() else {
        return StoreError::unavailable(DynamoDbError::Unreachable(innermost(error)));
    };
    let message = error.message().unwrap_or_default().to_owned();
    StoreError::unavailable(DynamoDbError::Refused { code: code.to_owned(), message })
}

/// The cause at the end of the chain: those before it only say whose call it was.
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

    fn of(codes: &[&str]) -> Failure {
        let reason = |code: &&str| CancellationReason::builder().code(*code).build();
        Failure::of_reasons(&codes.iter().map(reason).collect::<Vec<_>>())
    }

    #[test]
    fn a_transaction_that_met_another_is_tried_again_and_one_that_is_wrong_is_not() {
        for reason in ["ConditionalCheckFailed", "TransactionConflict"] {
            assert!(matches!(of(&["None", reason]), Failure::Contended), "{reason}");
        }
        for reason in ["ThrottlingError", "ProvisionedThroughputExceeded"] {
            let failure = of(&["ConditionalCheckFailed", reason]);
            assert!(matches!(failure, Failure::Throttled(_)), "{reason}");
        }
        let failure = of(&["ThrottlingError", "ValidationError", "None"]);
        assert!(matches!(failure, Failure::Broken(StoreError::Unavailable(_))), "{failure:?}");
    }
}
