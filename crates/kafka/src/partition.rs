use std::num::NonZeroU32;

/// The partition of a subject: the same as the Java producer chooses for a record with this key.
///
/// ```
/// use std::num::NonZeroU32;
///
/// let three = NonZeroU32::new(3).unwrap();
/// assert_eq!(headgate_kafka::partition_of("abc", three), 479_470_107 % 3);
/// ```
pub fn partition_of(subject: &str, partitions: NonZeroU32) -> u32 {
    // Kafka clears the sign bit.
    (murmur2(subject.as_bytes()) & 0x7fff_ffff) % partitions
}

/// Murmur hash 2 of 32 bits, with the seed of Kafka.
fn murmur2(data: &[u8]) -> u32 {
    const START: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;

    let (words, rest) = data.as_chunks::<4>();
    let mut hash = START ^ data.len() as u32;
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k = (k ^ (k >> R)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `org.apache.kafka.common.utils.Utils.murmur2`.
    #[test]
    fn hashes_match_kafka() {
        for (text, hash) in [
            ("", 275_646_681),
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
            ("größe", 588_164_084),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text:?}");
        }
    }

    #[test]
    fn the_sign_bit_is_cleared() {
        let ten = NonZeroU32::new(10).unwrap();
        // 2^31 more than the hash of -973,932,308.
        assert_eq!(partition_of("21", ten), 1_173_551_340 % 10);
        assert_eq!(partition_of("21", NonZeroU32::MIN), 0);
    }
}
