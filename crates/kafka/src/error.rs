use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use thiserror::Error;

/// Why a message was not acknowledged. Unless it was refused, it may have arrived all the same.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublishError {
    /// No broker acknowledged it in time.
    #[error("kafka is unavailable: {reason}")]
    Unavailable {
        /// What was last heard of the brokers.
        reason: String,
    },
    /// Too many messages wait for the brokers already.
    #[error("too many messages wait for kafka")]
    Busy,
    /// There is no such topic, and the brokers do not create it.
    #[error("kafka has no topic {topic}: create it")]
    UnknownTopic {
        /// Its name.
        topic: String,
    },
    /// The brokers do not let us do this.
    #[error("kafka does not let us publish: check the user, the password and the ACLs: {reason}")]
    Denied {
        /// What they said.
        reason: String,
    },
    /// The message can never be published as it is.
    #[error("kafka refuses the message: {reason}")]
    Refused {
        /// What is wrong with it.
        reason: String,
    },
}

// === impl PublishError ===

impl PublishError {
    /// Whether the same message may be acknowledged later: when brokers are back, or somebody has mended the topic or
    /// the permissions.
    pub const fn is_retryable(&self) -> bool {
        !matches!(self, Self::Refused { .. })
    }

    /// Why librdkafka did not deliver a message to this topic; `trouble` is what it last said of the brokers.
    pub(crate) fn new(error: &KafkaError, topic: &str, trouble: Option<Trouble>) -> Self {
        let code = error.rdkafka_error_code();
        let trouble = trouble.filter(|_| code.is_none_or(says_little));
        let (code, reason) = match trouble {
            Some(Trouble { code, reason }) => (Some(code), reason),
            None => (code, describe(error)),
        };
        match code {
            Some(Code::QueueFull) => Self::Busy,
            Some(Code::UnknownTopic | Code::UnknownTopicOrPartition) => {
                Self::UnknownTopic { topic: topic.to_owned() }
            }
            Some(code) if is_denial(code) => Self::Denied { reason },
            Some(code) if is_refusal(code) => Self::Refused { reason },
            _ => Self::Unavailable { reason },
        }
    }
}

/// What librdkafka said of the brokers.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    pub(crate) code: Code,
    pub(crate) reason: String,
}

/// Time ran out: the brokers' last trouble says why.
fn says_little(code: Code) -> bool {
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

fn is_refusal(code: Code) -> bool {
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

    fn of(code: Code, trouble: Option<Code>) -> PublishError {
        let trouble = trouble.map(|code| Trouble { code, reason: "as heard".to_owned() });
        PublishError::new(&KafkaError::MessageProduction(code), "t", trouble)
    }

    #[test]
    fn only_what_is_wrong_with_the_message_is_final() {
        assert!(!of(Code::MessageSizeTooLarge, None).is_retryable());
        assert!(!of(Code::InvalidRecord, Some(Code::AllBrokersDown)).is_retryable());
        for code in [Code::MessageTimedOut, Code::NotEnoughReplicas, Code::QueueFull, Code::Fatal] {
            assert!(of(code, None).is_retryable(), "{code:?}");
        }
    }

    #[test]
    fn a_timeout_tells_why() {
        let down = of(Code::MessageTimedOut, Some(Code::BrokerTransportFailure));
        assert_eq!(down, PublishError::Unavailable { reason: "as heard".into() });
        let denied = of(Code::MessageTimedOut, Some(Code::Authentication));
        assert_eq!(denied, PublishError::Denied { reason: "as heard".into() });
        let unknown = of(Code::UnknownTopic, Some(Code::Authentication));
        assert_eq!(unknown, PublishError::UnknownTopic { topic: "t".into() });
    }
}
