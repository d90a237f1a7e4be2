use std::{collections::BTreeSet, env, fs};

use headgate_quota::{QuotaPeriod, SubjectType};
use headgate_ratelimit::{KeyedAlgorithm, Level, Scope};
use utoipa::PartialSchema;

use super::*;
use crate::rest::schemas::enums;

/// Pages for people are no part of the interface for programs.
const PAGES: [&str; 5] =
    ["/", "/api-docs", "/api-docs/", "/api-docs/docs.css", "/api-docs/docs.js"];

#[test]
fn every_path_is_described() {
    for metrics_path in [Some(METRICS), Some("/internal/metrics"), None] {
        let routes = crate::rest::routes(metrics_path, false);
        let answered: BTreeSet<_> = routes.paths().filter(|path| !PAGES.contains(path)).collect();
        let document = document(metrics_path);
        let described: BTreeSet<_> = document.paths.paths.keys().map(String::as_str).collect();
        assert_eq!(described, answered);
    }
}

/// The values that the schema of `T` lists.
fn values<T: PartialSchema>() -> BTreeSet<String> {
    let schema = serde_json::to_value(T::schema()).expect("a schema");
    let values = schema["enum"].as_array().expect("an enumeration");
    values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn described_values_are_those_of_the_types() {
    let mut algorithms = names(headgate::Algorithm::ALL.map(headgate::Algorithm::name));
    // Only quotas count by the calendar.
    algorithms.remove(headgate::Algorithm::Calendar.name());
    assert_eq!(values::<enums::Algorithm>(), algorithms);
    let keyed_algorithms = KeyedAlgorithm::ALL.map(KeyedAlgorithm::name);
    let keyed_algorithms = names(keyed_algorithms).iter().map(|name| name.to_uppercase()).collect();
    assert_eq!(values::<keyed::described::Algorithm>(), keyed_algorithms);
    assert_eq!(values::<enums::Scope>(), names(Scope::ALL.map(Scope::name)));
    let mut rule_scopes = names(Scope::ALL.map(Scope::name));
    rule_scopes.insert(Scope::Attributes.name().to_owned());
    assert_eq!(values::<enums::RuleScope>(), rule_scopes);
    assert_eq!(
        values::<enums::FailMode>(),
        names(headgate::FailMode::ALL.map(headgate::FailMode::name))
    );
    assert_eq!(
        values::<enums::Degraded>(),
        names(headgate::Source::ALL.map(headgate::Source::name))
    );
    let levels = [Level::Exact, Level::Prefix, Level::Any, Level::Default];
    assert_eq!(values::<enums::Match>(), names(levels.map(Level::name)));
    assert_eq!(values::<enums::SubjectType>(), names(SubjectType::ALL.map(SubjectType::name)));
    assert_eq!(values::<enums::Period>(), names(QuotaPeriod::ALL.map(QuotaPeriod::name)));
}

#[test]
fn every_reference_leads_somewhere() {
    let document = serde_json::to_value(document(Some(METRICS))).expect("a document");
    let text = document.to_string();
    let references = text.split("\"$ref\":\"#").skip(1);
    let references: BTreeSet<_> = references.filter_map(|rest| rest.split('"').next()).collect();
    assert!(references.len() > 10, "{references:?}");
    for reference in references {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

/// To change the snapshot on purpose: `UPDATE_OPENAPI=1 cargo test -p headgate-server openapi`.
#[test]
fn the_description_is_the_one_in_docs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let described = document(Some(METRICS)).to_pretty_json().expect("a document") + "\n";
    if env::var_os("UPDATE_OPENAPI").is_some() {
        fs::write(path, &described).expect("a snapshot that can be written");
        return;
    }
    let snapshot = fs::read_to_string(path).unwrap_or_default();
    for (now, then) in described.lines().zip(snapshot.lines()) {
        assert_eq!(now, then, "run UPDATE_OPENAPI=1 cargo test -p headgate-server openapi");
    }
    assert!(described == snapshot, "run UPDATE_OPENAPI=1 cargo test -p headgate-server openapi");
}
