//! The schema of a domain file: the keys of envoyproxy/ratelimit, and our extensions.

use headgate::Algorithm;
use headgate_config::{Bounded, quoted};
use headgate_resilience::{FailModeName, LeaseText};
use serde::Deserialize;

use crate::{Metadata, Unit};

/// A file: one domain.
///
/// Required keys are optional here: missing ones are reported when the file is compiled, so that a
/// missing key does not hide other mistakes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a domain with its descriptors")]
pub(crate) struct DomainFile {
    pub(crate) domain: Option<String>,
    #[serde(default)]
    pub(crate) descriptors: Vec<DescriptorEntry>,
    /// Extension: admits all requests of the domain and only counts denials.
    #[serde(default)]
    pub(crate) shadow_mode: bool,
}

/// The limit of a key, or of one of its values, and the descriptors nested below.
#[expect(clippy::struct_excessive_bools, reason = "the file has as many keys")]
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a descriptor with its key")]
pub(crate) struct DescriptorEntry {
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) value: String,
    pub(crate) rate_limit: Option<RateLimitEntry>,
    #[serde(default)]
    pub(crate) descriptors: Vec<DescriptorEntry>,
    #[serde(default)]
    pub(crate) shadow_mode: bool,
    #[serde(default)]
    pub(crate) quota_mode: bool,
    #[serde(default)]
    pub(crate) detailed_metric: bool,
    #[serde(default)]
    pub(crate) value_to_metric: bool,
    #[serde(default)]
    pub(crate) share_threshold: bool,
    /// Sent to Envoy while the limit has room.
    pub(crate) metadata: Option<Metadata>,
}

/// A rate and its algorithm.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a rate limit")]
pub(crate) struct RateLimitEntry {
    pub(crate) unit: Option<Unit>,
    pub(crate) requests_per_unit: Option<Bounded<0, { u32::MAX as u64 }>>,
    pub(crate) unit_multiplier: Option<Bounded<1, 31_622_400>>,
    #[serde(default)]
    pub(crate) unlimited: bool,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) replaces: Vec<ReplacedLimit>,
    /// Extension: algorithm that counts the rate.
    pub(crate) algorithm: Option<AlgorithmName>,
    /// Extension: capacity of a bucket.
    pub(crate) burst: Option<Bounded<1, { u32::MAX as u64 }>>,
    /// Extension: fail mode while the store is down.
    pub(crate) fail_mode: Option<FailModeName>,
    /// Extension: part of the limit that a server takes in advance from Redis.
    pub(crate) lease: Option<LeaseText>,
}

/// A limit that this one replaces.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a name")]
pub(crate) struct ReplacedLimit {
    #[serde(default)]
    pub(crate) name: String,
}

/// The name of an algorithm.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct AlgorithmName(pub(crate) Algorithm);

impl TryFrom<String> for AlgorithmName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // Calendar limits count days and months of a time zone, which a file cannot name.
        let known = || Algorithm::RATES.into_iter().filter(|it| *it != Algorithm::Calendar);
        known().find(|it| it.name() == text).map(Self).ok_or_else(|| {
            let names: Vec<&str> = known().map(Algorithm::name).collect();
            format!("expected one of {}, got {}", names.join(", "), quoted(&text))
        })
    }
}
