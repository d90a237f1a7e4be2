//! Incremental parsing of replies (RESP2).

use std::ops::Range;

use redis::Value;
use thiserror::Error;

/// The reply to a command.
pub(crate) type Reply = Result<Value, ServerError>;

/// An error reply: a code, then a message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text}")]
pub(crate) struct ServerError {
    text: String,
}

/// Bytes that are not RESP2.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not a reply of Redis: does this port expect TLS (rediss://)?")]
pub(crate) struct ProtocolError;

/// Maximum length of texts and arrays: far more than the scripts return.
const MAX_LEN: usize = 16 << 20;

/// Maximum nesting of arrays.
const MAX_DEPTH: usize = 8;

// === impl ServerError ===

impl ServerError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// The first word, such as `WRONGTYPE`.
    pub(crate) fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Parses the reply at the start of `bytes`. Returns it with its length; `None` if it is
/// incomplete.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, ProtocolError> {
    let mut reader = Reader { bytes, at: 0 };
    let reply = reader.reply(0)?;
    Ok(reply.map(|reply| (reply, reader.at)))
}

/// The text of a string reply.
pub(crate) fn word(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(text(bytes)),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, ProtocolError> {
        let Some(kind) = self.bytes.get(self.at).copied() else { return Ok(None) };
        if depth > MAX_DEPTH || !b"+-:$*".contains(&kind) {
            return Err(ProtocolError);
        }
        let Some(line) = self.line() else {
            // A line is a number or a short text. One without an end is not from Redis.
            return if self.bytes.len() - self.at > MAX_LEN {
                Err(ProtocolError)
            } else {
                Ok(None)
            };
        };
        let line = &self.bytes[line];
        match kind {
            b'+' => Ok(Some(Ok(Value::SimpleString(text(line))))),
            b'-' => Ok(Some(Err(ServerError::new(text(line))))),
            b':' => Ok(Some(Ok(Value::Int(number(line)?)))),
            b'$' => self.bulk(number(line)?),
            _ => self.array(number(line)?, depth),
        }
    }

    /// Range of the line without its type byte and line break.
    fn line(&mut self) -> Option<Range<usize>> {
        let begin = self.at + 1;
        let end = begin + self.bytes[begin..].windows(2).position(|pair| pair == b"\r\n")?;
        self.at = end + 2;
        Some(begin..end)
    }

    fn bulk(&mut self, len: i64) -> Result<Option<Reply>, ProtocolError> {
        let Some(len) = length(len)? else { return Ok(Some(Ok(Value::Nil))) };
        let Some(bytes) = self.bytes.get(self.at..self.at + len + 2) else { return Ok(None) };
        self.at += len + 2;
        match bytes.strip_suffix(b"\r\n") {
            Some(text) => Ok(Some(Ok(Value::BulkString(text.to_vec())))),
            None => Err(ProtocolError),
        }
    }

    fn array(&mut self, len: i64, depth: usize) -> Result<Option<Reply>, ProtocolError> {
        let Some(len) = length(len)? else { return Ok(Some(Ok(Value::Nil))) };
        let mut items = Vec::with_capacity(len.min(self.bytes.len() - self.at));
        for _ in 0..len {
            match self.reply(depth + 1)? {
                Some(Ok(item)) => items.push(item),
                Some(Err(error)) => return Ok(Some(Err(error))),
                None => return Ok(None),
            }
        }
        Ok(Some(Ok(Value::Array(items))))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(digits: &[u8]) -> Result<i64, ProtocolError> {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or(ProtocolError)
}

/// A length; `None` for nil.
fn length(len: i64) -> Result<Option<usize>, ProtocolError> {
    match usize::try_from(len) {
        Ok(len) if len <= MAX_LEN => Ok(Some(len)),
        Err(_) if len == -1 => Ok(None),
        _ => Err(ProtocolError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &[u8] =
        b"+OK\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*1\r\n$0\r\n\r\n-OOM command\r\n*-1\r\n";

    fn read_all(mut bytes: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some((reply, len)) = parse(bytes).unwrap() {
            replies.push(reply);
            bytes = &bytes[len..];
        }
        replies
    }

    #[test]
    fn parses_every_type_of_reply() {
        let replies = read_all(REPLIES);
        let nested = Value::Array(vec![Value::BulkString(Vec::new())]);
        assert_eq!(
            replies,
            [
                Ok(Value::SimpleString("OK".into())),
                Ok(Value::Int(-7)),
                Ok(Value::BulkString(b"a\r\n".to_vec())),
                Ok(Value::Nil),
                Ok(Value::Array(vec![Value::Int(1), nested])),
                Err(ServerError::new("OOM command")),
                Ok(Value::Nil),
            ]
        );
        assert_eq!(replies[5].as_ref().unwrap_err().code(), "OOM");
    }

    #[test]
    fn incomplete_replies_are_not_parsed() {
        for end in 0..REPLIES.len() {
            let replies = read_all(&REPLIES[..end]);
            assert_eq!(replies, read_all(REPLIES)[..replies.len()], "cut at {end}");
        }
    }

    #[test]
    fn other_protocols_are_rejected() {
        for bytes in [
            &b"\x15\x03\x03\0\x02\x02\x46"[..],
            b"HTTP/1.1 400 Bad Request\r\n",
            b":seven\r\n",
            b"$-2\r\n",
            b"$99999999999\r\n",
            b"$1\r\nabc\r\n",
        ] {
            assert_eq!(parse(bytes), Err(ProtocolError), "{bytes:?}");
        }
        let deep = "*1\r\n".repeat(100);
        assert_eq!(parse(deep.as_bytes()), Err(ProtocolError));
    }
}
