use ring::digest::{SHA256, digest};

/// Returns sixteen hexadecimal digits of a hash.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let (start, _) = digest.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
    format!("{:016x}", u64::from_be_bytes(*start))
}
