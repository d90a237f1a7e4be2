use crate::PublishError;

/// Maximum length of a topic name in Kafka.
const MAX_TOPIC_BYTES: usize = 249;

/// A message to publish.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Topic: letters, digits, `.`, `_` and `-`.
    pub topic: &'a str,
    /// Key of the record.
    pub key: &'a str,
    /// Messages with the same value are in the same partition, in the order of publishing.
    pub partition_by: &'a str,
    /// Value of the record.
    pub payload: &'a [u8],
    /// Headers of the record.
    pub headers: &'a [(&'a str, &'a str)],
}

// === impl Message ===

impl Message<'_> {
    /// Rejects what librdkafka would treat as an error of the program.
    pub(crate) fn validate(&self) -> Result<(), PublishError> {
        let rejected = |reason: &str| Err(PublishError::Rejected { reason: reason.to_owned() });
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=MAX_TOPIC_BYTES).contains(&self.topic.len()) || !self.topic.bytes().all(is_legal) {
            return rejected("a topic name has 1 to 249 letters, digits, '.', '_' and '-'");
        }
        if matches!(self.topic, "." | "..") {
            return rejected("a topic name cannot be '.' or '..'");
        }
        if self.headers.iter().any(|(name, _)| name.contains('\0')) {
            return rejected("a header name cannot contain a NUL");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(topic: &str) -> Result<(), PublishError> {
        Message { topic, key: "", partition_by: "", payload: &[], headers: &[] }.validate()
    }

    #[test]
    fn invalid_topic_names_are_rejected() {
        assert!(to("k1s0.system.quota.exceeded.v1").is_ok());
        assert!(to(&"t".repeat(249)).is_ok());
        for topic in ["", ".", "..", "a b", "a\0b", "größe", &"t".repeat(250)] {
            assert!(!to(topic).unwrap_err().is_retryable(), "{topic:?}");
        }
    }

    #[test]
    fn a_header_name_with_a_nul_is_rejected() {
        let headers = &[("a", "fine"), ("b\0", "not")];
        let message = Message { topic: "t", key: "", partition_by: "", payload: &[], headers };
        assert!(!message.validate().unwrap_err().is_retryable());
    }
}
