use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use thiserror::Error;

/// Error of a message that was not acknowledged. Unless it was rejected, it may still have arrived.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// No broker acknowledged it in time.
    #[error("kafka is unavailable: {reason}")]
    Unavailable {
        /// Last error of the brokers.
        reason: String,
    },
    /// Too many messages in flight.
    #[error("too many messages in flight to kafka")]
    Busy,
    /// The topic does not exist, and the brokers do not create it.
    #[error("kafka has no topic {topic}: create it")]
    UnknownTopic {
        /// Name of the topic.
        topic: String,
    },
    /// Authentication or authorization failed.
    #[error("kafka denied access: check the user, the password and the ACLs: {reason}")]
    Denied {
        /// Error of the brokers.
        reason: String,
    },
    /// The message is invalid.
    #[error("kafka rejected the message: {reason}")]
    Rejected {
        /// Description of the invalid part.
        reason: String,
    },
}

// === impl PublishError ===

impl PublishError {
    /// Returns true if a retry can succeed, possibly after the topic or the permissions were fixed.
    pub const fn is_retryable(&self) -> bool {
        !matches!(self, Self::Rejected { .. })
    }

    /// Converts an error of librdkafka about a message to `topic`.
    pub(crate) fn new(error: &KafkaError, topic: &str, last_error: Option<BrokerError>) -> Self {
        let code = error.rdkafka_error_code();
        let last_error = last_error.filter(|_| code.is_none_or(is_unspecific));
        let (code, reason) = match last_error {
            Some(BrokerError { code, reason }) => (Some(code), reason),
            None => (code, describe(error)),
        };
        match code {
            Some(Code::QueueFull) => Self::Busy,
            Some(Code::UnknownTopic | Code::UnknownTopicOrPartition) => {
                Self::UnknownTopic { topic: topic.to_owned() }
            }
            Some(code) if is_denial(code) => Self::Denied { reason },
            Some(code) if is_rejection(code) => Self::Rejected { reason },
            _ => Self::Unavailable { reason },
        }
    }
}

/// An error of the brokers.
#[derive(Clone, Debug)]
pub(crate) struct BrokerError {
    pub(crate) code: Code,
    pub(crate) reason: String,
}

/// Returns true if the code is a timeout, whose cause is the last error of the brokers.
fn is_unspecific(code: Code) -> bool {
    use Code::{
        AllBrokersDown, BrokerTransportFailure, MessageTimedOut, OperationTimedOut, TimedOutQueue,
    };
    matches!(
        code,
        AllBrokersDown
            | BrokerTransportFailure
            | MessageTimedOut
            | OperationTimedOut
            | TimedOutQueue
    )
}

fn is_denial(code: Code) -> bool {
    use Code::{
        Authentication, ClusterAuthorizationFailed, SaslAuthenticationFailed,
        TopicAuthorizationFailed,
    };
    matches!(
        code,
        Authentication
            | ClusterAuthorizationFailed
            | SaslAuthenticationFailed
            | TopicAuthorizationFailed
    )
}

fn is_rejection(code: Code) -> bool {
    use Code::{
        InvalidRecord, InvalidTimestamp, InvalidTopic, MessageBatchTooLarge, MessageSizeTooLarge,
    };
    matches!(
        code,
        InvalidRecord
            | InvalidTimestamp
            | InvalidTopic
            | MessageBatchTooLarge
            | MessageSizeTooLarge
    )
}

fn describe(error: &KafkaError) -> String {
    error.rdkafka_error_code().map_or_else(|| error.to_string(), |code| code.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: Code, last_error: Option<Code>) -> PublishError {
        let last_error = last_error.map(|code| BrokerError { code, reason: "as heard".to_owned() });
        PublishError::new(&KafkaError::MessageProduction(code), "t", last_error)
    }

    #[test]
    fn only_errors_of_the_message_are_final() {
        assert!(!of(Code::MessageSizeTooLarge, None).is_retryable());
        assert!(!of(Code::InvalidRecord, Some(Code::AllBrokersDown)).is_retryable());
        for code in [Code::MessageTimedOut, Code::NotEnoughReplicas, Code::QueueFull, Code::Fatal] {
            assert!(of(code, None).is_retryable(), "{code:?}");
        }
    }

    #[test]
    fn a_timeout_has_the_last_error_of_the_brokers() {
        let down = of(Code::MessageTimedOut, Some(Code::BrokerTransportFailure));
        assert_eq!(down, PublishError::Unavailable { reason: "as heard".into() });
        let denied = of(Code::MessageTimedOut, Some(Code::Authentication));
        assert_eq!(denied, PublishError::Denied { reason: "as heard".into() });
        let unknown = of(Code::UnknownTopic, Some(Code::Authentication));
        assert_eq!(unknown, PublishError::UnknownTopic { topic: "t".into() });
    }
}
