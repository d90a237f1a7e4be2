//! A client's message: a JSON array that begins with its kind.

use serde_json::value::RawValue;

/// Kind of a frame, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Event,
    Req,
    Close,
    Auth,
    /// An array that begins with another word.
    Unknown,
    /// Not such an array.
    Malformed,
}

/// Elements of a frame after its first word.
pub(crate) type Parts<'f> = Vec<&'f RawValue>;

// === impl FrameKind ===

impl FrameKind {
    /// Returns the kind of `frame`. Reads its first word only, so that it is counted before it is
    /// parsed.
    pub(crate) fn of(frame: &str) -> Self {
        let Some(word) = first_word(frame) else {
            return Self::Malformed;
        };
        match word {
            "EVENT" => Self::Event,
            "REQ" => Self::Req,
            "CLOSE" => Self::Close,
            "AUTH" => Self::Auth,
            _ => Self::Unknown,
        }
    }
}

fn first_word(frame: &str) -> Option<&str> {
    let array = frame.trim_start().strip_prefix('[')?;
    let (word, _) = array.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(word)
}

/// Elements of `frame` after its first word, unparsed.
pub(crate) fn parts(frame: &str) -> Option<Parts<'_>> {
    let mut parts: Parts<'_> = serde_json::from_str(frame).ok()?;
    if parts.is_empty() {
        return None;
    }
    parts.remove(0);
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_known_by_its_first_word() {
        let cases = [
            (r#"["EVENT",{"#, FrameKind::Event),
            (" [ \"REQ\" , \"a\"]", FrameKind::Req),
            (r#"["CLOSE","a"]"#, FrameKind::Close),
            (r#"["AUTH",{}]"#, FrameKind::Auth),
            (r#"["COUNT","a",{}]"#, FrameKind::Unknown),
            (r#"["event",{}]"#, FrameKind::Unknown),
            (r#"{"EVENT":1}"#, FrameKind::Malformed),
            ("[1]", FrameKind::Malformed),
            (r#"["EVENT"#, FrameKind::Malformed),
            ("", FrameKind::Malformed),
        ];
        for (frame, kind) in cases {
            assert_eq!(FrameKind::of(frame), kind, "{frame}");
        }
    }

    #[test]
    fn parts_are_what_follows_the_first_word() {
        let parts = parts(r#"["REQ", "a" ,{"kinds":[1]}]"#).unwrap();
        let texts: Vec<&str> = parts.iter().map(|part| part.get()).collect();
        assert_eq!(texts, ["\"a\"", "{\"kinds\":[1]}"]);
        for broken in ["[]", "[\"REQ\"", "7", "[\"REQ\",]"] {
            assert!(super::parts(broken).is_none(), "{broken}");
        }
    }
}
