//! Converts quotas to and from messages.

use headgate_api::quotas::QuotaRefusal;
use headgate_quota::{
    Draft, Input, Listed, Page, PageError, PeriodUsage, PolicyFilter, QuotaId, QuotaPolicy,
    QuotaUsage, UnknownSubjectType, usecase::Incremented,
};

use crate::{
    error::{CallError, Violation},
    proto::quota as proto,
    wire::{number, time},
};

/// Parses a policy's id; an invalid id is an unknown policy.
pub(super) fn id(field: &'static str, text: &str) -> Result<QuotaId, CallError> {
    if text.is_empty() {
        return Err(CallError::field(field, format!("{field} is required")));
    }
    let shown = || text.chars().take(QuotaId::MAX_BYTES).collect();
    text.parse().map_err(|_| QuotaRefusal::NotFound(shown()).into())
}

/// Returns the requested page, or everything that is invalid in it.
pub(super) fn page(number: u32, size: u32) -> Result<Page, Vec<Violation>> {
    let or_default = |number, default| if number == 0 { default } else { number };
    let number = or_default(number, Page::DEFAULT.number());
    let size = or_default(size, Page::DEFAULT.size());
    let name = |error: &PageError| match error {
        PageError::Number => "page",
        PageError::Size => "page_size",
    };
    Page::new(number, size).map_err(|error| vec![Violation::new(name(&error), error.to_string())])
}

/// Returns the filter and the page of a list, or everything that is invalid in them.
pub(super) fn listing(
    wire: &proto::ListQuotaPoliciesRequest,
) -> Result<(PolicyFilter, Page), CallError> {
    let subject_type = match wire.subject_type.as_str() {
        "" => Ok(None),
        name => name.parse().map(Some),
    };
    let unknown =
        |error: UnknownSubjectType| Violation::new("subject_type", format!("subject_type {error}"));
    match (subject_type.map_err(unknown), page(wire.page, wire.page_size)) {
        (Ok(subject_type), Ok(page)) => {
            let subject_id = Some(wire.subject_id.clone()).filter(|id| !id.is_empty());
            let enabled_only = wire.enabled_only;
            Ok((PolicyFilter { subject_type, subject_id, enabled_only }, page))
        }
        (subject_type, page) => {
            let wrong = subject_type.err().into_iter().chain(page.err().into_iter().flatten());
            Err(CallError::Invalid(wrong.collect()))
        }
    }
}

/// Returns the draft of a new policy.
pub(super) fn new_draft(wire: proto::CreateQuotaPolicyRequest) -> Draft {
    Draft {
        name: or_missing(wire.name),
        subject_type: or_missing(wire.subject_type),
        subject_id: or_missing(wire.subject_id),
        limit: number(wire.limit).into(),
        period: or_missing(wire.period),
        time_zone: or_missing(wire.time_zone),
        enabled: wire.enabled.into(),
        alert_threshold_percent: percent(wire.alert_threshold_percent),
    }
}

/// Returns the draft of a changed policy, with the fields that were sent.
pub(super) fn changed_draft(wire: proto::UpdateQuotaPolicyRequest) -> Draft {
    Draft {
        name: wire.name.map_or(Input::Missing, Input::Given),
        limit: wire.limit.map_or(Input::Missing, |limit| number(limit).into()),
        enabled: wire.enabled.map_or(Input::Missing, Input::Given),
        alert_threshold_percent: percent(wire.alert_threshold_percent),
        ..Draft::default()
    }
}

/// Returns a page of the periods in which a policy was used.
pub(super) fn history(
    id: &QuotaId,
    listed: &Listed<PeriodUsage>,
) -> proto::GetQuotaHistoryResponse {
    proto::GetQuotaHistoryResponse {
        quota_id: id.to_string(),
        history: listed.items.iter().map(proto::QuotaPeriodUsage::from).collect(),
        total: listed.total,
        has_next: listed.has_next(),
    }
}

fn percent(percent: Option<u32>) -> Input<i64> {
    percent.map_or(Input::Missing, |percent| Input::Given(percent.into()))
}

fn or_missing(text: String) -> Input<String> {
    if text.is_empty() { Input::Missing } else { Input::Given(text) }
}

impl From<&QuotaPolicy> for proto::QuotaPolicy {
    fn from(policy: &QuotaPolicy) -> Self {
        let spec = &policy.spec;
        Self {
            id: policy.id.to_string(),
            name: spec.name.clone(),
            subject_type: spec.subject.kind.name().to_owned(),
            subject_id: spec.subject.id.clone(),
            limit: spec.limit,
            period: spec.period.name().to_owned(),
            enabled: spec.enabled,
            alert_threshold_percent: spec.alert_threshold_percent.map(u32::from),
            time_zone: spec.time_zone.clone().unwrap_or_default(),
            created_at: Some(time(policy.created_at)),
            updated_at: Some(time(policy.updated_at)),
        }
    }
}

impl From<&Listed<QuotaPolicy>> for proto::ListQuotaPoliciesResponse {
    fn from(listed: &Listed<QuotaPolicy>) -> Self {
        Self {
            policies: listed.items.iter().map(proto::QuotaPolicy::from).collect(),
            total: listed.total,
            has_next: listed.has_next(),
        }
    }
}

impl From<&QuotaUsage> for proto::QuotaUsage {
    fn from(usage: &QuotaUsage) -> Self {
        Self {
            quota_id: usage.quota_id.to_string(),
            subject_type: usage.subject.kind.name().to_owned(),
            subject_id: usage.subject.id.clone(),
            period: usage.period.name().to_owned(),
            limit: usage.limit,
            used: usage.used,
            remaining: usage.remaining,
            usage_percent: usage.usage_percent,
            exceeded: usage.exceeded,
            period_start: Some(time(usage.span.start)),
            period_end: Some(time(usage.span.last())),
            reset_at: Some(time(usage.span.end)),
            retrieved_at: Some(time(usage.retrieved_at)),
            reserved: usage.reserved,
        }
    }
}

impl From<&Incremented> for proto::IncrementQuotaUsageResponse {
    fn from(done: &Incremented) -> Self {
        let usage = &done.usage;
        Self {
            quota_id: usage.quota_id.to_string(),
            used: usage.used,
            remaining: usage.remaining,
            usage_percent: usage.usage_percent,
            exceeded: usage.exceeded,
            allowed: done.allowed,
            replayed: done.replayed,
        }
    }
}

impl From<&PeriodUsage> for proto::QuotaPeriodUsage {
    fn from(period: &PeriodUsage) -> Self {
        let PeriodUsage { span, limit, used, closed_at, updated_at, .. } = period;
        Self {
            period_name: span.name.clone(),
            period_start: Some(time(span.start)),
            period_end: Some(time(span.last())),
            limit: *limit,
            used: *used,
            usage_percent: QuotaUsage::percent(*used, *limit),
            exceeded: QuotaUsage::is_exceeded(*used, *limit),
            closed: closed_at.is_some(),
            updated_at: Some(time(*updated_at)),
        }
    }
}
