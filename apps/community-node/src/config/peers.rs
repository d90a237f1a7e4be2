use std::fmt;

use headgate_app_common::{Environment, VariableError};

use super::{GOSSIP_PEERS, GOSSIP_TOPICS, IROH_SECRET, IROH_SECRET_FILE};
use crate::gossip::Peer;

/// Maximum length of a topic's name.
const MAX_TOPIC_BYTES: usize = 256;

/// Key of the node's id among its peers, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct IrohSecret([u8; 32]);

impl IrohSecret {
    /// The secret.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        let digits = text.as_bytes();
        if digits.len() != 2 * bytes.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Debug for IrohSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

pub(super) fn secret(environment: &Environment) -> Result<Option<IrohSecret>, VariableError> {
    let Some(text) = environment.value_or_file(IROH_SECRET, IROH_SECRET_FILE)? else {
        return Ok(None);
    };
    let problem = "expected 64 hexadecimal digits, such as from `openssl rand -hex 32`";
    let secret = IrohSecret::read(&text).ok_or_else(|| VariableError::new(IROH_SECRET, problem))?;
    Ok(Some(secret))
}

pub(super) fn topics(environment: &Environment) -> Result<Vec<String>, VariableError> {
    let mut topics: Vec<String> = Vec::new();
    for topic in environment.list(GOSSIP_TOPICS) {
        if topic.len() > MAX_TOPIC_BYTES {
            let problem = format!("expected topics of at most {MAX_TOPIC_BYTES} bytes");
            return Err(VariableError::new(GOSSIP_TOPICS, problem));
        }
        if !topics.iter().any(|known| known == topic) {
            topics.push(topic.to_owned());
        }
    }
    Ok(topics)
}

pub(super) fn peers(environment: &Environment) -> Result<Vec<Peer>, VariableError> {
    let peers = environment.list(GOSSIP_PEERS).map(str::parse::<Peer>);
    peers
        .collect::<Result<_, _>>()
        .map_err(|error| VariableError::new(GOSSIP_PEERS, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_64_digits_and_never_shown() {
        let secret = IrohSecret::read(&"0aF".repeat(22)[..64]).unwrap();
        assert_eq!(&secret.bytes()[..3], [0x0a, 0xf0, 0xaf]);
        assert_eq!(format!("{secret:?}"), "***");
        for bad in ["", "0a", &"g".repeat(64), &"+1".repeat(32), &"ü".repeat(32)] {
            assert!(IrohSecret::read(bad).is_none(), "{bad}");
        }
    }
}
