//! Headers of decisions: `X-RateLimit-*`, `Retry-After`, and the fields of
//! draft-ietf-httpapi-ratelimit-headers-11.
//!
//! Of these, `RateLimit-Policy` lists the limits that the request had to pass, by name, and
//! `RateLimit` how each of them stands: `r` is what is left, `t` the seconds until there is more.
//! The limit that decided is the first; the lists end where they would become too long.
//! `Retry-After` is never earlier than the `t` of the limit that denies.

mod policy;

use axum::http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};
use headgate::Decision;
use headgate_quota::QuotaUsage;
use headgate_ratelimit::usecase::{KeyedQuestion, KeyedVerdict, Verdict};

use self::policy::Policy;
use super::text_buffer::{Push, TextBuffer};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const LEASED: HeaderName = HeaderName::from_static("x-ratelimit-leased");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Number of headers of a response, to avoid a reallocation.
pub(super) const HEADERS: usize = 10;

/// Maximum length of a list of several limits. Proxies refuse a response whose headers exceed their
/// buffer, for nginx 4 KiB by default, and its decision is lost; a caller that then fails open has no
/// limit.
const MAX_LIST_BYTES: usize = 1024;

/// Fits a name of usual length and two numbers.
type Item = TextBuffer<128>;

/// Writes the headers of a check.
pub(super) fn write(headers: &mut HeaderMap, verdict: &Verdict) {
    write_numbers(headers, &verdict.decision);
    if verdict.stack.is_empty() {
        return write_one(headers, &Policy::of_rule(&verdict.rule), &verdict.decision);
    }
    write_list(headers, verdict);
}

/// Writes the limits of a check, the one that decided first, and others while there is room.
fn write_list(headers: &mut HeaderMap, verdict: &Verdict) {
    let Verdict { decision, stack, .. } = verdict;
    let (before, rest) = stack.split_at(decision.decided_by.min(stack.len()));
    let (decider, after) = rest.split_at(rest.len().min(1));
    let (mut policies, mut standings) = (Vec::new(), Vec::new());
    for (rule, outcome) in decider.iter().chain(before).chain(after) {
        let ends = (policies.len(), standings.len());
        if !policies.is_empty() {
            policies.push_text(", ");
            standings.push_text(", ");
        }
        let policy = Policy::among(rule, stack);
        let decision = Decision::from(*outcome);
        policy.push(&mut policies, &decision);
        policy.push_standing(&mut standings, &decision);
        if ends.0 > 0 && policies.len().max(standings.len()) > MAX_LIST_BYTES {
            policies.truncate(ends.0);
            standings.truncate(ends.1);
            break;
        }
    }
    put(headers, IETF_POLICY, &policies);
    put(headers, IETF, &standings);
}

/// Writes the headers of a check by key.
pub(super) fn write_keyed(
    headers: &mut HeaderMap,
    question: &KeyedQuestion<'_>,
    verdict: &KeyedVerdict<'_>,
) {
    write_numbers(headers, &verdict.decision);
    write_one(headers, &Policy::of_key(question.algorithm, verdict.limit), &verdict.decision);
}

/// Writes the headers of a quota.
pub(super) fn write_quota(headers: &mut HeaderMap, usage: &QuotaUsage) {
    let QuotaUsage { quota_id, limit, remaining, span, .. } = usage;
    headers.insert(LIMIT, HeaderValue::from(*limit));
    headers.insert(REMAINING, HeaderValue::from(*remaining));
    headers.insert(RESET, HeaderValue::from(span.end.as_secs_ceil()));
    let window = span.end.since(span.start) / 1_000_000;
    let left = usage.seconds_until_reset();
    let fields = [
        (IETF_POLICY, format!("\"{quota_id}\";q={limit};w={window}")),
        (IETF, format!("\"{quota_id}\";r={remaining};t={left}")),
    ];
    // Ids are valid header values.
    let value = |(name, text)| Some((name, HeaderValue::try_from(text).ok()?));
    headers.extend(fields.into_iter().filter_map(value));
}

/// Writes `Retry-After`, unless the request was admitted.
pub(super) fn write_retry(headers: &mut HeaderMap, decision: &Decision) {
    if !decision.allowed {
        headers.insert(RETRY_AFTER, HeaderValue::from(decision.retry_after_secs()));
    }
}

fn write_numbers(headers: &mut HeaderMap, decision: &Decision) {
    let mut digits = itoa::Buffer::new();
    put(headers, LIMIT, digits.format(decision.limit).as_bytes());
    put(headers, REMAINING, digits.format(decision.remaining).as_bytes());
    put(headers, RESET, digits.format(decision.reset_at_secs()).as_bytes());
    if decision.leased {
        headers.insert(LEASED, HeaderValue::from_static("true"));
    }
}

fn write_one(headers: &mut HeaderMap, policy: &Policy<'_>, decision: &Decision) {
    if let Some(text) = policy.text(decision) {
        put(headers, IETF_POLICY, text.as_bytes());
    } else {
        let mut item = Vec::new();
        policy.push(&mut item, decision);
        put(headers, IETF_POLICY, &item);
    }
    if policy.is_short() {
        let mut item = Item::new();
        policy.push_standing(&mut item, decision);
        put(headers, IETF, item.as_bytes());
    } else {
        let mut item = Vec::new();
        policy.push_standing(&mut item, decision);
        put(headers, IETF, &item);
    }
}

/// Adds a header. Converting a number with the library would allocate twice.
fn put(headers: &mut HeaderMap, header: HeaderName, text: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(text) {
        headers.insert(header, value);
    }
}
