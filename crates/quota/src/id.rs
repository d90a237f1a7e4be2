//! Ids of policies.

use std::{fmt, str::FromStr, sync::Arc};

use headgate::Timestamp;
use serde::{Serialize, Serializer};
use thiserror::Error;
use uuid::Uuid;

/// Id of a policy. Generated ids sort by creation time; others may have any form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuotaId(Arc<str>);

/// Invalid id.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("an id has 1 to {max} letters, digits, '_' and '-'", max = QuotaId::MAX_BYTES)]
pub struct QuotaIdError;

/// Crockford's base 32.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Generates a unique text of 26 digits that sorts by time.
pub(crate) fn sortable(now: Timestamp) -> String {
    let millis = u128::from(now.as_micros() / 1_000) & ((1 << 48) - 1);
    let random = Uuid::new_v4().as_u128() & ((1 << 48) - 1);
    let more = Uuid::new_v4().as_u128() & ((1 << 32) - 1);
    let number = millis << 80 | random << 32 | more;
    let digit = |place: u32| char::from(DIGITS[(number >> (5 * place)) as usize & 31]);
    (0..26).rev().map(digit).collect()
}

// === impl QuotaId ===

impl QuotaId {
    /// Maximum length in bytes.
    pub const MAX_BYTES: usize = 64;

    /// Generates an id for a policy that is created now.
    pub fn new(now: Timestamp) -> Self {
        Self(format!("quota_{}", sortable(now)).into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for QuotaId {
    type Err = QuotaIdError;

    fn from_str(text: &str) -> Result<Self, QuotaIdError> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=Self::MAX_BYTES).contains(&text.len()) && text.bytes().all(safe) {
            return Ok(Self(text.into()));
        }
        Err(QuotaIdError)
    }
}

impl fmt::Display for QuotaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for QuotaId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_unique_and_sort_by_creation_time() {
        let id = |millis: u64| QuotaId::new(Timestamp::from_micros(millis * 1_000));
        let ids = [id(1_771_840_800_000), id(1_771_840_800_001), id(1_871_840_800_000)];
        assert!(ids.is_sorted() && ids[0] != id(1_771_840_800_000));
        assert_eq!(ids[0].as_str().len(), "quota_".len() + 26);
        assert_eq!(ids[0].as_str().parse(), Ok(ids[0].clone()));
    }

    #[test]
    fn accepts_letters_digits_underscores_and_hyphens() {
        assert!("quota_01JABCDEF1234567890".parse::<QuotaId>().is_ok());
        assert!("x".repeat(64).parse::<QuotaId>().is_ok());
        for text in ["", "a:b", "a b", "a/b", "é", "a\0", &"x".repeat(65)] {
            assert_eq!(text.parse::<QuotaId>(), Err(QuotaIdError), "{text}");
        }
    }
}
