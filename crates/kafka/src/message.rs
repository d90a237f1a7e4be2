use crate::PublishError;

/// Kafka's own bound on a topic's name.
const LONGEST_TOPIC: usize = 249;

/// What is to be published.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Where to: letters, digits, `.`, `_` and `-`.
    pub topic: &'a str,
    /// The record's key.
    pub key: &'a str,
    /// Messages of which this is the same are in one partition, in the order in which they were published.
    pub partition_by: &'a str,
    /// The record's value.
    pub payload: &'a [u8],
    /// Names and values that go with it.
    pub headers: &'a [(&'a str, &'a str)],
}

// === impl Message ===

impl Message<'_> {
    /// What librdkafka would take for a fault of the program, not of the message.
    pub(crate) fn validate(&self) -> Result<(), PublishError> {
        let refused = |reason: &str| Err(PublishError::Refused { reason: reason.to_owned() });
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=LONGEST_TOPIC).contains(&self.topic.len()) || !self.topic.bytes().all(is_legal) {
            return refused("a topic's name has 1 to 249 letters, digits, '.', '_' and '-'");
        }
        if matches!(self.topic, "." | "..") {
            return refused("a topic cannot be called '.' or '..'");
        }
        if self.headers.iter().any(|(name, _)| name.contains('\0')) {
            return refused("a header's name cannot have a NUL in it");
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
    fn knows_what_a_topic_can_be_called() {
        assert!(to("k1s0.system.quota.exceeded.v1").is_ok());
        assert!(to(&"t".repeat(249)).is_ok());
        for topic in ["", ".", "..", "a b", "a\0b", "größe", &"t".repeat(250)] {
            assert!(!to(topic).unwrap_err().is_retryable(), "{topic:?}");
        }
    }

    #[test]
    fn refuses_a_header_whose_name_ends_early() {
        let headers = &[("a", "fine"), ("b\0", "not")];
        let message = Message { topic: "t", key: "", partition_by: "", payload: &[], headers };
        assert!(!message.validate().unwrap_err().is_retryable());
    }
}
