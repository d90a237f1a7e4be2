//! Converts overrides to and from messages.

use std::time::Duration;

use headgate::Timestamp;
use headgate_ratelimit::{
    Catalog, Input, Listed, OverrideDraft, OverrideFilter, OverrideId, Page, RuleId, RuleOverride,
};
use serde_json::Value as Json;

use super::{
    error::{CallError, Violation},
    proto::{self, ListOverridesRequest, ListOverridesResponse, SetOverrideRequest},
    rules,
    wire::time,
};

/// Parses an override's id; an invalid id is an unknown override.
pub(super) fn id(text: &str) -> Result<OverrideId, CallError> {
    const MAX_CHARS: usize = 64;
    if text.is_empty() {
        return Err(CallError::field("override_id", "override_id is required"));
    }
    text.parse().map_err(|_| CallError::NoSuchOverride(text.chars().take(MAX_CHARS).collect()))
}

/// Returns the draft of an override.
pub(super) fn draft(wire: SetOverrideRequest) -> OverrideDraft {
    let or_missing =
        |text: String| if text.is_empty() { Input::Missing } else { Input::Given(text) };
    let subject = wire.subject.into_iter().map(|(name, value)| (name, Json::from(value)));
    OverrideDraft {
        rule_id: or_missing(wire.rule_id),
        subject: Json::Object(subject.collect()).into(),
        limit: wire.limit.into(),
        until: wire.until.map_or(Input::Missing, |until| Input::Given(moment(&until))),
        reason: or_missing(wire.reason),
    }
}

/// Returns the time in a message, if it is one since 1970.
fn moment(wire: &prost_types::Timestamp) -> Option<Timestamp> {
    let seconds = u64::try_from(wire.seconds).ok()?;
    let since_epoch = Duration::new(seconds, u32::try_from(wire.nanos).ok()?);
    u64::try_from(since_epoch.as_micros()).ok().map(Timestamp::from_micros)
}

/// Returns the filter and the page of a list, or everything that is invalid in them.
pub(super) fn listing(
    wire: &ListOverridesRequest,
    now: Timestamp,
) -> Result<(OverrideFilter, Page), CallError> {
    let rule = match wire.rule_id.as_str() {
        "" => Ok(None),
        id => id.parse::<RuleId>().map(Some),
    };
    let rule = rule.map_err(|_| Violation::new("rule_id", "rule_id must be a UUID"));
    match (rule, rules::page(wire.page, wire.page_size)) {
        (Ok(rule), Ok(page)) => {
            let search = Some(wire.search.clone()).filter(|text| !text.is_empty());
            let active_at = wire.active_only.then_some(now);
            Ok((OverrideFilter { rule, search, active_at }, page))
        }
        (rule, page) => {
            let wrong = rule.err().into_iter().chain(page.err().into_iter().flatten());
            Err(CallError::Invalid(wrong.collect()))
        }
    }
}

/// Shows an override, as it is now.
pub(super) fn shown(one: &RuleOverride, catalog: &Catalog) -> proto::Override {
    let attribute = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    proto::Override {
        id: one.id.to_string(),
        rule_id: one.spec.rule.to_string(),
        subject: one.spec.subject.iter().map(attribute).collect(),
        limit: one.spec.limit.into(),
        until: one.spec.until.map(time),
        reason: one.spec.reason.clone().unwrap_or_default(),
        active: one.is_active(catalog.now()),
        created_at: Some(time(one.created_at)),
        updated_at: Some(time(one.updated_at)),
    }
}

/// Shows a page.
pub(super) fn page(listed: &Listed<RuleOverride>, catalog: &Catalog) -> ListOverridesResponse {
    ListOverridesResponse {
        overrides: listed.items.iter().map(|one| shown(one, catalog)).collect(),
        pagination: Some(rules::pagination(listed)),
    }
}
