//! Keys of buckets.

use smallvec::SmallVec;

use crate::condition::IndexKey;

/// An attribute and an index key as bytes.
pub(super) type BucketKey = SmallVec<[u8; 64]>;

/// Writes keys without an allocation for each.
#[derive(Default)]
pub(super) struct KeyBuffer(BucketKey);

impl KeyBuffer {
    /// Writes the key of a bucket; without `key`, that of all rules which need the attribute.
    pub(super) fn write(&mut self, name: &str, key: Option<IndexKey<'_>>) -> &BucketKey {
        self.0.clear();
        // Names have no spaces, so that different keys are different bytes.
        self.0.extend_from_slice(name.as_bytes());
        match key {
            None => self.0.extend_from_slice(b" "),
            Some(IndexKey::Equals(text)) => self.push(b" =", text.as_bytes()),
            Some(IndexKey::Prefix(text)) => self.push(b" ^", text.as_bytes()),
            Some(IndexKey::Suffix(text)) => self.push(b" $", text.as_bytes()),
            Some(IndexKey::Network(network)) => {
                self.push(b" /", &network.bytes());
                self.0.extend_from_slice(&network.shape().to_be_bytes());
            }
        }
        &self.0
    }

    fn push(&mut self, kind: &[u8], text: &[u8]) {
        self.0.extend_from_slice(kind);
        self.0.extend_from_slice(text);
    }
}
