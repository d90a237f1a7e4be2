//! Parameters of a request, validated.

use std::borrow::Cow;

use axum::http::request::Parts;
use headgate::{Cost, Key, KeyError};
use headgate_guard::AddressKey;
use headgate_ratelimit::{KeyedAlgorithm, KeyedLimits, usecase::KeyedQuestion};

use crate::rest::{
    client::{Clients, Peer},
    error::KeyedRefusal,
};

/// The parameters of a request, and its subject.
pub(super) struct Parameters<'q> {
    pub(super) algorithm: Option<KeyedAlgorithm>,
    key: Option<Subject<'q>>,
    permits: Option<Cow<'q, str>>,
}

/// The subject of a request.
enum Subject<'q> {
    Given(Cow<'q, str>),
    Client(AddressKey),
}

impl<'q> Parameters<'q> {
    /// Parameters of a check.
    pub(super) const OF_CHECK: [&'static str; 3] = ["algorithm", "key", "permits"];
    /// Parameters that identify counters.
    pub(super) const OF_SUBJECT: [&'static str; 2] = ["algorithm", "key"];

    /// Reads the `known` parameters of the query. Duplicate parameters are ambiguous, and misspelt
    /// ones would be silently ignored: both are errors.
    pub(super) fn read(head: &'q Parts, known: &[&str]) -> Result<Self, KeyedRefusal> {
        let [mut algorithm, mut key, mut permits] = [None, None, None];
        let mut unknown = Vec::new();
        let query = head.uri.query().unwrap_or_default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let place: &mut Option<Cow<'q, str>> = match &*name {
                "algorithm" => &mut algorithm,
                "key" => &mut key,
                "permits" if known.contains(&"permits") => &mut permits,
                _ => {
                    unknown.push(name);
                    continue;
                }
            };
            if place.replace(value).is_some() {
                return Err(KeyedRefusal::Parameter(format!("{name} is given twice")));
            }
        }
        if !unknown.is_empty() {
            return Err(refuse(&unknown, known));
        }
        let algorithm = algorithm.map(|name| name.parse()).transpose()?;
        Ok(Self { algorithm, key: key.map(Subject::Given), permits })
    }

    /// Uses the client's address if no key was given.
    pub(super) fn or_client(self, head: &Parts, peer: Option<Peer>, clients: &Clients) -> Self {
        let client = || peer.map(|peer| Subject::Client(clients.key(peer.0.ip(), &head.headers)));
        Self { key: self.key.or_else(client), ..self }
    }

    /// Returns the key and the algorithm.
    pub(super) fn subject(
        &self,
        default: KeyedAlgorithm,
    ) -> Result<KeyedQuestion<'_>, KeyedRefusal> {
        let key = self.key.as_ref().map(Subject::text).ok_or_else(|| {
            KeyedRefusal::Parameter("key is missing: say whose counters are meant".to_owned())
        })?;
        let algorithm = self.algorithm.unwrap_or(default);
        Ok(KeyedQuestion { algorithm, key: checked(key)?, permits: Cost::ONE })
    }

    /// Returns the key, the algorithm and the permits.
    pub(super) fn question(
        &self,
        default: KeyedAlgorithm,
        limits: &KeyedLimits,
    ) -> Result<KeyedQuestion<'_>, KeyedRefusal> {
        let subject = self.subject(default)?;
        let Some(permits) = &self.permits else {
            return Ok(subject);
        };
        let most = limits.of(subject.algorithm, subject.key.subject()).limit().capacity();
        Ok(KeyedQuestion { permits: number(permits, most)?, ..subject })
    }
}

impl Subject<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Given(key) => key,
            Self::Client(address) => address,
        }
    }
}

#[cold]
fn refuse(unknown: &[Cow<'_, str>], known: &[&str]) -> KeyedRefusal {
    const LISTED: usize = 20;
    const SHOWN_CHARS: usize = 64;
    let shown = |name: &Cow<'_, str>| {
        let shown: String = name.chars().take(SHOWN_CHARS).collect();
        format!("{shown:?}")
    };
    let names: Vec<String> = unknown.iter().take(LISTED).map(shown).collect();
    let (names, known) = (names.join(", "), known.join(", "));
    KeyedRefusal::Parameter(format!("unknown parameter {names}; known here: {known}"))
}

/// Validates a key.
fn checked(key: &str) -> Result<Key<'_>, KeyedRefusal> {
    let checked = if key.trim().is_empty() {
        Err(KeyError::Empty)
    } else if key.contains(char::REPLACEMENT_CHARACTER) {
        // The replacement character: keys with different invalid bytes would be the same key.
        Err(KeyError::NotUtf8)
    } else {
        Key::new(key)
    };
    checked.map_err(|error| KeyedRefusal::Argument(error.to_string()))
}

/// Parses a number of permits from 1 to `most`.
fn number(text: &str, most: u64) -> Result<Cost, KeyedRefusal> {
    const SHOWN_CHARS: usize = 24;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    if !is_whole {
        let message = format!("permits must be a whole number, got {shown:?}");
        return Err(KeyedRefusal::Parameter(message));
    }
    let permits = text.parse().ok().filter(|permits| *permits <= most);
    permits.and_then(|permits| Cost::new(permits).ok()).ok_or_else(|| {
        KeyedRefusal::Argument(format!("permits must be from 1 to {most} here, got {shown}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_from_one_to_the_capacity() {
        let code = |text| number(text, 100).map_err(|refusal| refusal.code());
        assert_eq!(code("1").map(Cost::get), Ok(1));
        assert_eq!(code("0100").map(Cost::get), Ok(100));
        for outside in ["0", "-0", "-1", "101", "99999999999999999999999999"] {
            assert_eq!(code(outside), Err("INVALID_REQUEST"), "{outside}");
        }
        for malformed in ["", "-", "x", "1.5", "1e3", "+1", " 1", "١", "0x1"] {
            assert_eq!(code(malformed), Err("INVALID_PARAMETER"), "{malformed}");
        }
    }

    #[test]
    fn keys_have_no_control_characters_and_braces() {
        for key in ["user:123", "ip:10.0.0.1", "a b", "ユーザー", &"x".repeat(512)] {
            assert!(checked(key).is_ok(), "{key}");
        }
        for key in ["", " ", "\u{3000}", "a\nb", "a\0", "{a}", "\u{fffd}", &"x".repeat(513)] {
            assert_eq!(checked(key).unwrap_err().code(), "INVALID_REQUEST", "{key:?}");
        }
    }
}
