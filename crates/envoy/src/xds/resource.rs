//! Resources converted to domain files: both are compiled in the same way.

use std::sync::Arc;

use headgate_config::{Problem, quoted};
use prost::Message as _;
use prost_types::Any;

use super::proto::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};
use crate::{
    Metadata, Unit,
    compiled::{self, Domains},
    domain::Domain,
    file::{DescriptorEntry, DomainFile, RateLimitEntry, ReplacedLimit},
};

/// Type of the resources.
pub(super) const TYPE_URL: &str =
    "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig";

/// Maximum number of resources in a configuration.
const MAX_RESOURCES: usize = 10_000;

/// Maximum number of problems in a refusal.
const MAX_PROBLEMS: usize = 20;

/// Returns the domains of `resources`, or everything that is wrong with them.
pub(super) fn domains(resources: &[Any]) -> Result<Domains, String> {
    if resources.len() > MAX_RESOURCES {
        return Err(format!("expected at most {MAX_RESOURCES} resources, got {}", resources.len()));
    }
    let mut problems = Vec::new();
    let mut named = Vec::with_capacity(resources.len());
    for resource in resources {
        match decode(resource) {
            Ok(config) => {
                let name = format!("resource {}", quoted(&config.name));
                let mut invalid = Vec::new();
                named.push((name.clone(), Arc::new(compile(config, &mut invalid))));
                problems.extend(invalid.into_iter().map(|problem| format!("{name}: {problem}")));
            }
            Err(error) => {
                // Its index would not identify it: servers send resources in any order.
                problems.push(format!("a resource of {} bytes: {error}", resource.value.len()));
            }
        }
    }
    if problems.is_empty() {
        match compiled::merge(named) {
            Ok(domains) => return Ok(domains),
            Err(duplicates) => problems = duplicates.iter().map(ToString::to_string).collect(),
        }
    }
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    if more > 0 {
        problems.push(format!("and {more} more"));
    }
    Err(problems.join("; "))
}

fn decode(resource: &Any) -> Result<RateLimitConfig, String> {
    if resource.type_url != TYPE_URL {
        return Err(format!("expected the type {TYPE_URL}, got {}", quoted(&resource.type_url)));
    }
    RateLimitConfig::decode(resource.value.as_slice())
        .map_err(|error| format!("cannot be decoded: {error}"))
}

fn compile(config: RateLimitConfig, problems: &mut Vec<Problem>) -> Domain {
    let RateLimitConfig { name: _, domain, descriptors } = config;
    let descriptors = descriptors.into_iter().map(DescriptorEntry::from).collect();
    Domain::compile(&DomainFile { domain: Some(domain), descriptors, shadow_mode: false }, problems)
}

impl From<RateLimitDescriptor> for DescriptorEntry {
    fn from(wire: RateLimitDescriptor) -> Self {
        Self {
            key: Some(wire.key),
            value: wire.value,
            rate_limit: wire.rate_limit.map(RateLimitEntry::from),
            descriptors: wire.descriptors.into_iter().map(Self::from).collect(),
            shadow_mode: wire.shadow_mode,
            quota_mode: wire.quota_mode,
            detailed_metric: wire.detailed_metric,
            metadata: wire.metadata.map(Metadata),
            ..Self::default()
        }
    }
}

impl From<RateLimitPolicy> for RateLimitEntry {
    fn from(wire: RateLimitPolicy) -> Self {
        Self {
            unit: unit(wire.unit()),
            requests_per_unit: Some(wire.requests_per_unit.into()),
            unlimited: wire.unlimited,
            name: wire.name,
            replaces: wire.replaces.into_iter().map(|it| ReplacedLimit { name: it.name }).collect(),
            ..Self::default()
        }
    }
}

/// Returns `None` for an unknown unit.
const fn unit(wire: RateLimitUnit) -> Option<Unit> {
    Some(match wire {
        RateLimitUnit::Unknown => return None,
        RateLimitUnit::Second => Unit::Second,
        RateLimitUnit::Minute => Unit::Minute,
        RateLimitUnit::Hour => Unit::Hour,
        RateLimitUnit::Day => Unit::Day,
        RateLimitUnit::Week => Unit::Week,
        RateLimitUnit::Month => Unit::Month,
        RateLimitUnit::Year => Unit::Year,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        source::SourceFile, xds::proto::ratelimit::config::ratelimit::v3::RateLimitReplace,
    };

    fn any(config: &RateLimitConfig) -> Any {
        Any { type_url: TYPE_URL.to_owned(), value: config.encode_to_vec() }
    }

    fn policy(unit: RateLimitUnit, requests_per_unit: u32) -> RateLimitPolicy {
        RateLimitPolicy { unit: unit.into(), requests_per_unit, ..RateLimitPolicy::default() }
    }

    fn descriptor(
        key: &str,
        value: &str,
        rate_limit: Option<RateLimitPolicy>,
    ) -> RateLimitDescriptor {
        let (key, value) = (key.to_owned(), value.to_owned());
        RateLimitDescriptor { key, value, rate_limit, ..RateLimitDescriptor::default() }
    }

    fn metadata(key: &str, value: &str) -> prost_types::Struct {
        let value = prost_types::value::Kind::StringValue(value.to_owned());
        let value = prost_types::Value { kind: Some(value) };
        prost_types::Struct { fields: [(key.to_owned(), value)].into() }
    }

    /// A resource with every field.
    fn resource() -> RateLimitConfig {
        let replaces = vec![RateLimitReplace { name: "users".to_owned() }];
        let users = RateLimitPolicy { name: "users".to_owned(), ..policy(RateLimitUnit::Week, 3) };
        let banned = RateLimitPolicy { replaces, ..policy(RateLimitUnit::Day, 0) };
        let free = RateLimitPolicy { unlimited: true, ..RateLimitPolicy::default() };
        let below = RateLimitDescriptor {
            shadow_mode: true,
            detailed_metric: true,
            quota_mode: true,
            metadata: Some(metadata("tier", "slow")),
            ..descriptor("path", "/a*", Some(policy(RateLimitUnit::Year, 9)))
        };
        let user =
            RateLimitDescriptor { descriptors: vec![below], ..descriptor("user", "", Some(users)) };
        RateLimitConfig {
            name: "one".to_owned(),
            domain: "edge".to_owned(),
            descriptors: vec![
                user,
                descriptor("user", "banned", Some(banned)),
                descriptor("partner", "", Some(free)),
                descriptor("trusted", "", None),
            ],
        }
    }

    const FILE: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: week, requests_per_unit: 3, name: users}
    descriptors:
      - key: path
        value: /a*
        shadow_mode: true
        detailed_metric: true
        quota_mode: true
        metadata: {tier: slow}
        rate_limit: {unit: year, requests_per_unit: 9}
  - key: user
    value: banned
    rate_limit: {unit: day, requests_per_unit: 0, replaces: [{name: users}]}
  - key: partner
    rate_limit: {unlimited: true}
  - key: trusted
";

    #[test]
    fn a_resource_is_equivalent_to_a_file_with_the_same_content() {
        let described = |domain: &Domain| {
            let mut rules: Vec<String> = domain.rules().map(|rule| format!("{rule:?}")).collect();
            rules.sort();
            (domain.name.clone(), rules)
        };
        let resources = domains(&[any(&resource())]).unwrap();
        let file = compiled::compile(&SourceFile::new("edge.yaml", FILE)).unwrap();
        assert_eq!(described(&resources["edge"]), described(&file));
        assert_eq!(file.rules().count(), 4);
    }

    #[test]
    fn every_problem_is_reported() {
        let bad = RateLimitConfig {
            name: "two".to_owned(),
            descriptors: vec![
                descriptor("", "", None),
                descriptor("a", "", Some(policy(RateLimitUnit::Unknown, 1))),
            ],
            ..RateLimitConfig::default()
        };
        let alien = Any { type_url: "type.googleapis.com/a.B".to_owned(), value: Vec::new() };
        let garbage = Any { value: vec![0xff], ..any(&resource()) };
        let reason = domains(&[any(&resource()), any(&bad), alien, garbage]).unwrap_err();
        for expected in [
            "resource \"two\": domain: must not be empty",
            "resource \"two\": descriptors[0].key: must not be empty",
            "resource \"two\": descriptors[1].rate_limit.unit: missing; expected one of",
            "a resource of 0 bytes: expected the type type.googleapis.com/ratelimit.config",
            "a resource of 1 bytes: cannot be decoded",
        ] {
            assert!(reason.contains(expected), "{expected}\n{reason}");
        }
        let twice = domains(&[any(&resource()), any(&resource())]).unwrap_err();
        assert!(twice.contains("duplicate domain \"edge\""), "{twice}");
        let many = vec![any(&bad); 30];
        assert!(domains(&many).unwrap_err().ends_with("and 70 more"));
        let too_many = vec![Any::default(); MAX_RESOURCES + 1];
        assert!(domains(&too_many).unwrap_err().starts_with("expected at most 10000 resources"));
    }

    #[test]
    fn nesting_that_is_too_deep_is_refused() {
        let mut deep = descriptor("a", "", None);
        for _ in 0..200 {
            deep = RateLimitDescriptor { descriptors: vec![deep], ..descriptor("a", "", None) };
        }
        let config = RateLimitConfig { descriptors: vec![deep], ..resource() };
        assert!(domains(&[any(&config)]).unwrap_err().contains("cannot be decoded"));
    }
}
