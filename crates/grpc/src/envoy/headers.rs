//! The headers that Envoy adds to responses to clients.

use std::fmt::Write as _;

use headgate_envoy::{DescriptorStatus, EnvoyVerdict, Rate, ResponseHeaders};

use crate::proto::envoy::config::core::v3::HeaderValue;

/// Returns the configured headers that `verdict` has a value for.
pub(super) fn response_headers(
    verdict: &EnvoyVerdict,
    configured: ResponseHeaders,
) -> Vec<HeaderValue> {
    match configured {
        ResponseHeaders::None => Vec::new(),
        ResponseHeaders::RetryAfter => retry_after(verdict).collect(),
        ResponseHeaders::All => {
            retry_after(verdict).chain(tightest(verdict)).chain(leased(verdict)).collect()
        }
        ResponseHeaders::DraftVersion03 => draft_version_03(verdict),
    }
}

fn retry_after(verdict: &EnvoyVerdict) -> impl Iterator<Item = HeaderValue> {
    verdict.retry_after_secs().map(|seconds| header("retry-after", seconds.to_string())).into_iter()
}

/// Says that a limit was decided without asking the store.
fn leased(verdict: &EnvoyVerdict) -> Option<HeaderValue> {
    verdict.is_leased().then(|| header("x-ratelimit-leased", "true".to_owned()))
}

/// The limit with the least left.
fn tightest(verdict: &EnvoyVerdict) -> impl Iterator<Item = HeaderValue> {
    let limited = verdict.tightest().and_then(|status| Some((status, rate(status)?)));
    limited.map(|(status, rate)| of_status(status, rate.requests.to_string())).into_iter().flatten()
}

/// The headers of limitador's `DRAFT_VERSION_03`: the limit with the least left, and the windows of
/// all that apply.
fn draft_version_03(verdict: &EnvoyVerdict) -> Vec<HeaderValue> {
    let limited = verdict.all().filter_map(|(_, status)| Some((status, rate(status)?)));
    let mut limited: Vec<(&DescriptorStatus, Rate)> = limited.collect();
    limited.sort_by_key(|(status, _)| (!status.over_limit, status.remaining));
    let Some((status, tightest)) = limited.first() else {
        return Vec::new();
    };
    let mut policies = tightest.requests.to_string();
    for (status, rate) in &limited {
        // Writing to a string cannot fail.
        let _ = write!(policies, ", {};w={}", rate.requests, rate.window().as_secs());
        let name = status.rule.as_ref().map_or("", |rule| rule.name());
        let name: String = name.chars().filter(|character| is_quotable(*character)).collect();
        if !name.is_empty() {
            let _ = write!(policies, ";name=\"{name}\"");
        }
    }
    of_status(status, policies).to_vec()
}

/// Returns true if a quoted string in a header can hold `character` unescaped.
const fn is_quotable(character: char) -> bool {
    matches!(character, ' '..='~') && !matches!(character, '"' | '\\')
}

fn rate(status: &DescriptorStatus) -> Option<Rate> {
    status.rule.as_ref()?.rate()
}

fn of_status(status: &DescriptorStatus, limit: String) -> [HeaderValue; 3] {
    [
        header("x-ratelimit-limit", limit),
        header("x-ratelimit-remaining", status.remaining.to_string()),
        header("x-ratelimit-reset", status.reset_after_secs().to_string()),
    ]
}

fn header(key: &str, value: String) -> HeaderValue {
    HeaderValue { key: key.to_owned(), value, ..HeaderValue::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_only_characters_that_need_no_escape() {
        let name = "per user/\u{e9}\"a\\b\r\nc~\u{7f}";
        let kept: String = name.chars().filter(|character| is_quotable(*character)).collect();
        assert_eq!(kept, "per user/abc~");
    }
}
