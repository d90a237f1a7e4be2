//! The relay's messages: JSON arrays.

use nostr::event::EventId;
use serde::Serialize;

/// A message to the client, other than an event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply<'r> {
    /// End of the stored events.
    Eose(&'r str),
    /// Id of an event, true if it was accepted, and the reason if not.
    Ok(&'r EventId, bool, &'r str),
    /// A subscription was closed or refused.
    Closed(&'r str, &'r str),
    Notice(&'r str),
    /// A challenge to sign.
    Auth(&'r str),
}

// === impl Reply ===

impl Reply<'_> {
    /// Text of the message.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Eose(id) => array(&("EOSE", id)),
            Self::Ok(id, taken, reason) => array(&("OK", id, taken, reason)),
            Self::Closed(id, reason) => array(&("CLOSED", id, reason)),
            Self::Notice(reason) => array(&("NOTICE", reason)),
            Self::Auth(challenge) => array(&("AUTH", challenge)),
        }
    }
}

fn array(parts: &impl Serialize) -> String {
    // Serializing strings cannot fail.
    serde_json::to_string(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reply_is_an_array_that_says_what_it_is() {
        let id = EventId::from_byte_array([0xab; 32]);
        let hex = "ab".repeat(32);
        let cases = [
            (Reply::Eose("a\"b"), r#"["EOSE","a\"b"]"#.to_owned()),
            (Reply::Ok(&id, false, "invalid: x"), format!(r#"["OK","{hex}",false,"invalid: x"]"#)),
            (Reply::Closed("s", "gone"), r#"["CLOSED","s","gone"]"#.to_owned()),
            (Reply::Notice("hm"), r#"["NOTICE","hm"]"#.to_owned()),
            (Reply::Auth("c"), r#"["AUTH","c"]"#.to_owned()),
        ];
        for (reply, text) in cases {
            assert_eq!(reply.text(), text);
        }
    }
}
