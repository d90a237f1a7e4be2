//! Ids of requests: in responses, error bodies and logs.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries the id, in requests and responses.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// A request's id: the caller's, or a new one.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

/// Makes the ids of one process.
struct Ids {
    /// `req_` and 64 random bits of this process, as text.
    prefix: [u8; Self::PREFIX_BYTES],
    /// 64 random bits that hide the number of requests.
    mask: u64,
    next: AtomicU64,
}

impl RequestId {
    const MAX_BYTES: usize = 128;

    /// Returns the caller's id, if it is valid in a log line; otherwise a new one.
    #[inline]
    pub fn of(headers: &HeaderMap) -> Self {
        match headers.get(HEADER) {
            Some(given) if is_sane(given) => Self(given.clone()),
            _ => Self::generate(),
        }
    }

    /// A new id: `req_` and 32 hexadecimal digits.
    pub fn generate() -> Self {
        static IDS: LazyLock<Ids> = LazyLock::new(Ids::new);
        let id = IDS.next();
        Self(HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("req_")))
    }

    /// Returns the id.
    #[inline]
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    /// Returns the value of the header.
    #[inline]
    pub fn into_header(self) -> HeaderValue {
        self.0
    }
}

// === impl Ids ===

impl Ids {
    const PREFIX_BYTES: usize = 4 + 16;
    const BYTES: usize = Self::PREFIX_BYTES + 16;

    fn new() -> Self {
        // Keyed by the operating system's randomness.
        let random = RandomState::new();
        let mut prefix = *b"req_0000000000000000";
        write_hex(&mut prefix[4..], random.hash_one(0_u8));
        Self { prefix, mask: random.hash_one(1_u8), next: AtomicU64::new(0) }
    }

    /// Returns an id that is unique in this process, and among processes with a probability of 1 -
    /// 2^-64.
    fn next(&self) -> [u8; Self::BYTES] {
        let count = self.next.fetch_add(1, Relaxed);
        let mut id = [0; Self::BYTES];
        let (prefix, rest) = id.split_at_mut(Self::PREFIX_BYTES);
        prefix.copy_from_slice(&self.prefix);
        write_hex(rest, scrambled(count ^ self.mask) ^ self.mask);
        id
    }
}

/// A bijection: the finalizer of `SplitMix64`, every step of which is invertible.
const fn scrambled(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

fn write_hex(digits: &mut [u8], number: u64) {
    for (digit, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        digit[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
        digit[1] = b"0123456789abcdef"[usize::from(byte & 0xf)];
    }
}

fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=RequestId::MAX_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_prefix_of_its_process_and_a_number_of_its_own() {
        let ids = Ids { prefix: *b"req_0123456789abcdef", mask: 7, next: AtomicU64::new(0) };
        let one = ids.next();
        let text = str::from_utf8(&one).unwrap();
        assert!(text.starts_with("req_0123456789abcdef"), "{text}");
        assert!(text[4..].bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
        assert_eq!(text.len(), 36);
        assert_ne!(one, ids.next());
    }

    /// Ids of different counts differ, which 48 bits of a hash did not guarantee.
    #[test]
    fn every_step_of_scrambling_can_be_undone() {
        const fn undone(mut number: u64) -> u64 {
            number ^= (number >> 31) ^ (number >> 62);
            number = number.wrapping_mul(0x3196_42b2_d24d_8ec3);
            number ^= (number >> 27) ^ (number >> 54);
            number = number.wrapping_mul(0x96de_1b17_3f11_9089);
            number ^ (number >> 30) ^ (number >> 60)
        }
        for number in [0, 1, 2, 3, u64::MAX, u64::MAX - 1, 1 << 63, 0x1234_5678_9abc_def0] {
            assert_eq!(undone(scrambled(number)), number, "{number}");
        }
    }

    #[test]
    fn processes_have_prefixes_of_their_own() {
        let (one, other) = (Ids::new(), Ids::new());
        assert_ne!(one.prefix, other.prefix);
    }
}
