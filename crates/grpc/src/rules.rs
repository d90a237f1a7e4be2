//! Converts rules to and from messages.

use headgate::{FailMode, LeasePolicy};
use headgate_ratelimit::{
    Draft, Input, LeaseDraft, Listed, Page, PageError, PlanLimits, RateLimitRule, RuleFilter,
    RuleId, RuleScope, Selector, SelectorDraft, UnknownRuleScope,
};
use serde_json::{Map, Value as Json};

use super::{
    error::{CallError, Violation},
    proto::{
        self, CreateRuleRequest, ListRulesRequest, ListRulesResponse, Pagination, UpdateRuleRequest,
    },
    wire::{number, time},
};

/// Parses a rule's id; an invalid id is an unknown rule.
pub(super) fn id(text: &str) -> Result<RuleId, CallError> {
    const MAX_CHARS: usize = 64;
    if text.is_empty() {
        return Err(CallError::field("rule_id", "rule_id is required"));
    }
    text.parse().map_err(|_| CallError::NoSuchRule(text.chars().take(MAX_CHARS).collect()))
}

/// Returns the filter and the page of a list, or everything that is invalid in them.
pub(super) fn listing(wire: &ListRulesRequest) -> Result<(RuleFilter, Page), CallError> {
    let scope = match wire.scope.as_str() {
        "" => Ok(None),
        name => name.parse().map(|RuleScope(scope)| Some(scope)),
    };
    let scope = scope.map_err(|error: UnknownRuleScope| Violation::new("scope", error.to_string()));
    match (scope, page(wire.page, wire.page_size)) {
        (Ok(scope), Ok(page)) => {
            Ok((RuleFilter { scope, enabled_only: wire.enabled_only, search: None }, page))
        }
        (scope, page) => {
            let wrong = scope.err().into_iter().chain(page.err().into_iter().flatten());
            Err(CallError::Invalid(wrong.collect()))
        }
    }
}

/// Returns a page, or everything that is invalid in it; 0 means the default.
pub(super) fn page(number: i32, size: i32) -> Result<Page, Vec<Violation>> {
    let or_default =
        |number, default| if number == 0 { Some(default) } else { u32::try_from(number).ok() };
    let number = or_default(number, Page::DEFAULT.number()).unwrap_or(0);
    let size = or_default(size, Page::DEFAULT.size()).unwrap_or(0);
    let page_error = |error: PageError| match error {
        PageError::Number => Violation::new("page", error.to_string()),
        PageError::Size => Violation::new("page_size", error.to_string()),
    };
    // Each number is validated beside a valid one, so that both are reported.
    let wrong = [Page::new(number, Page::DEFAULT.size()), Page::new(Page::DEFAULT.number(), size)];
    let wrong = || wrong.into_iter().filter_map(Result::err).map(page_error).collect();
    Page::new(number, size).map_err(|_| wrong())
}

/// Returns the draft of a new rule.
pub(super) fn new_draft(wire: CreateRuleRequest) -> Result<Draft, CallError> {
    let draft = Draft {
        name: or_missing(wire.name),
        limit: wire.limit.into(),
        window_seconds: wire.window_secs.into(),
        algorithm: or_missing(wire.algorithm),
        burst: if wire.burst == 0 { Input::Missing } else { wire.burst.into() },
        fail_mode: or_missing(wire.fail_mode),
        lease: wire.lease.map_or(Input::Missing, lease),
        selector: selector(wire.selector),
        enabled: wire.enabled.map_or(Input::Missing, Input::Given),
        ..Draft::default()
    };
    with_key(draft, &wire.key)
}

/// Returns the draft of a changed rule.
pub(super) fn changed_draft(wire: UpdateRuleRequest) -> Result<Draft, CallError> {
    let draft = Draft {
        name: wire.name.map_or(Input::Missing, or_null),
        limit: wire.limit.into(),
        window_seconds: wire.window_secs.into(),
        algorithm: or_missing(wire.algorithm),
        burst: match wire.burst {
            None => Input::Missing,
            Some(0) => Input::Null,
            Some(burst) => burst.into(),
        },
        fail_mode: wire.fail_mode.map_or(Input::Missing, or_null),
        lease: match wire.lease {
            Some(given) => lease(given),
            None if wire.clear_lease => Input::Null,
            None => Input::Missing,
        },
        selector: selector(wire.selector),
        enabled: wire.enabled.map_or(Input::Missing, Input::Given),
        ..Draft::default()
    };
    with_key(draft, &wire.key)
}

/// The conditions of a rule over attributes. JSON that cannot be parsed is a value of a wrong type.
fn selector(wire: Option<proto::Selector>) -> SelectorDraft {
    let Some(wire) = wire else { return SelectorDraft::default() };
    let when = match wire.when_json.as_str() {
        "" => Input::Given(Json::Object(Map::new())),
        text => serde_json::from_str(text).map_or(Input::WrongType("invalid JSON"), Input::Given),
    };
    SelectorDraft {
        when,
        per: wire.per.into(),
        priority: i64::from(wire.priority).into(),
        stops: wire.stops.into(),
        limits: wire.limit_by.map_or(Input::Missing, |limits| limits_json(limits).into()),
    }
}

/// Limits by plan as they are written in JSON.
fn limits_json(wire: proto::PlanLimits) -> Json {
    let mut fields: Map<String, Json> =
        wire.limits.into_iter().map(|(value, limit)| (value, limit.into())).collect();
    fields.insert("by".to_owned(), wire.by.into());
    fields.extend(wire.default_limit.map(|limit| ("default".to_owned(), limit.into())));
    Json::Object(fields)
}

/// Adds scope and pattern from `key` to a draft, unless it is over attributes; if `key` is invalid, returns everything that is.
fn with_key(mut draft: Draft, key: &str) -> Result<Draft, CallError> {
    if key.is_empty() && draft.selector.is_given() {
        return Ok(draft);
    }
    if let Some((scope, pattern)) = key.split_once(':') {
        draft.scope = scope.to_owned().into();
        draft.identifier_pattern = pattern.to_owned().into();
        return Ok(draft);
    }
    let message = if key.is_empty() {
        "key is required"
    } else {
        "key must be written like scope:identifier_pattern, such as user:*"
    };
    draft.scope = "user".to_owned().into();
    draft.identifier_pattern = "*".to_owned().into();
    let others = draft.validate(None).err().unwrap_or_default();
    let others = others.into_iter().map(Violation::from);
    Err(CallError::Invalid([Violation::new("key", message)].into_iter().chain(others).collect()))
}

fn lease(wire: proto::Lease) -> Input<LeaseDraft> {
    let proto::Lease { share_percent, hold_ms } = wire;
    Input::Given(LeaseDraft { share_percent: share_percent.into(), hold_ms: hold_ms.into() })
}

fn or_missing(text: String) -> Input<String> {
    if text.is_empty() { Input::Missing } else { Input::Given(text) }
}

fn or_null(text: String) -> Input<String> {
    if text.is_empty() { Input::Null } else { Input::Given(text) }
}

impl From<&RateLimitRule> for proto::RateLimitRule {
    fn from(rule: &RateLimitRule) -> Self {
        let spec = &rule.spec;
        Self {
            id: rule.id.to_string(),
            name: rule.display_name(),
            key: spec.key(),
            limit: spec.limit.into(),
            window_secs: spec.window_seconds.into(),
            algorithm: spec.algorithm.name().to_owned(),
            enabled: spec.enabled,
            created_at: Some(time(rule.created_at)),
            scope: spec.scope.name().to_owned(),
            identifier_pattern: spec.identifier_pattern.to_string(),
            updated_at: Some(time(rule.updated_at)),
            burst: spec.burst.unwrap_or(0).into(),
            fail_mode: spec.fail_mode.map_or("", FailMode::name).to_owned(),
            lease: spec.lease.map(proto::Lease::from),
            selector: spec.selector.as_deref().map(proto::Selector::from),
        }
    }
}

impl From<&Selector> for proto::Selector {
    fn from(selector: &Selector) -> Self {
        Self {
            when_json: selector.when_json().to_string(),
            per: selector.per().map(str::to_owned).collect(),
            priority: selector.priority(),
            stops: selector.stops(),
            limit_by: selector.limits().map(proto::PlanLimits::from),
        }
    }
}

impl From<&PlanLimits> for proto::PlanLimits {
    fn from(limits: &PlanLimits) -> Self {
        Self {
            by: limits.by().to_owned(),
            limits: limits
                .limits()
                .map(|(value, limit)| (value.to_owned(), limit.into()))
                .collect(),
            default_limit: limits.default().map(i64::from),
        }
    }
}

impl From<LeasePolicy> for proto::Lease {
    fn from(policy: LeasePolicy) -> Self {
        Self { share_percent: policy.share_percent().into(), hold_ms: policy.hold_ms().into() }
    }
}

impl From<&Listed<RateLimitRule>> for ListRulesResponse {
    fn from(listed: &Listed<RateLimitRule>) -> Self {
        Self {
            rules: listed.items.iter().map(proto::RateLimitRule::from).collect(),
            pagination: Some(pagination(listed)),
        }
    }
}

pub(super) fn pagination<T>(listed: &Listed<T>) -> Pagination {
    Pagination {
        total_count: number(listed.total),
        page: i32::try_from(listed.page.number()).unwrap_or(i32::MAX),
        page_size: i32::try_from(listed.page.size()).unwrap_or(i32::MAX),
        has_next: listed.has_next(),
    }
}
