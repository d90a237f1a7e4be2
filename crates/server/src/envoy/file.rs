//! A file of one domain: the keys of envoyproxy/ratelimit, and some of ours.

use headgate::Algorithm;
use headgate_config::{Bounded, quoted};
use serde::Deserialize;

use super::{metadata::Metadata, unit::Unit};
use crate::config::FailModeName;

/// What a file says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a domain with its descriptors")]
pub(super) struct DomainFile {
    pub(super) domain: String,
    #[serde(default)]
    pub(super) descriptors: Vec<DescriptorEntry>,
    /// Ours: all of the domain is let through and only counted.
    #[serde(default)]
    pub(super) shadow_mode: bool,
}

/// What it says of one key, or of one value of it.
#[expect(clippy::struct_excessive_bools, reason = "the file has as many keys")]
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a descriptor with its key")]
pub(super) struct DescriptorEntry {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
    pub(super) rate_limit: Option<RateLimitEntry>,
    #[serde(default)]
    pub(super) descriptors: Vec<DescriptorEntry>,
    #[serde(default)]
    pub(super) shadow_mode: bool,
    #[serde(default)]
    pub(super) quota_mode: bool,
    #[serde(default)]
    pub(super) detailed_metric: bool,
    #[serde(default)]
    pub(super) value_to_metric: bool,
    #[serde(default)]
    pub(super) share_threshold: bool,
    /// What Envoy is told while the limit has room.
    pub(super) metadata: Option<Metadata>,
}

/// How much it allows.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a rate limit")]
pub(super) struct RateLimitEntry {
    pub(super) unit: Option<Unit>,
    pub(super) requests_per_unit: Option<Bounded<0, { u32::MAX as u64 }>>,
    pub(super) unit_multiplier: Option<Bounded<1, 31_622_400>>,
    #[serde(default)]
    pub(super) unlimited: bool,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) replaces: Vec<Replaced>,
    /// Ours: how it is counted.
    pub(super) algorithm: Option<AlgorithmWord>,
    /// Ours: how much a bucket holds.
    pub(super) burst: Option<Bounded<1, { u32::MAX as u64 }>>,
    /// Ours: who decides while the store cannot.
    pub(super) fail_mode: Option<FailModeName>,
}

/// A limit that another takes the place of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a name")]
pub(super) struct Replaced {
    pub(super) name: String,
}

/// The name of an algorithm.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct AlgorithmWord(pub(super) Algorithm);

impl TryFrom<String> for AlgorithmWord {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let known = || Algorithm::ALL.into_iter().filter(|it| *it != Algorithm::Calendar);
        known().find(|it| it.name() == text).map(Self).ok_or_else(|| {
            let names: Vec<&str> = known().map(Algorithm::name).collect();
            format!("expected one of {}, got {}", names.join(", "), quoted(&text))
        })
    }
}
