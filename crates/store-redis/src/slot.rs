//! Hash slot of a key: CRC-16/XMODEM modulo 16,384.

/// Number of slots of a cluster.
pub(crate) const SLOTS: u16 = 16_384;

const TABLE: [u16; 256] = table();

#[expect(clippy::cast_possible_truncation, reason = "there are 256 bytes")]
const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The slot of `key`, or of its hash tag: the text between its first braces, unless it is empty.
pub(crate) fn of(key: &[u8]) -> u16 {
    let crc = hashed(key)
        .iter()
        .fold(0_u16, |crc, byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]);
    crc % SLOTS
}

fn hashed(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        Some(len) if len > 0 => &rest[..len],
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn slots_match_cluster_keyslot() {
        // CLUSTER KEYSLOT
        for (key, slot) in [
            ("", 0),
            ("123456789", 12_739),
            ("bar", 5_061),
            ("foo", 12_182),
            ("{user1000}.following", of(b"user1000")),
            ("foo{}{bar}", of(b"foo{}{bar}")),
            ("foo{{bar}}zap", of(b"{bar")),
            ("foo{bar}{zap}", of(b"bar")),
        ] {
            assert_eq!(of(key.as_bytes()), slot, "{key}");
        }
    }
}
