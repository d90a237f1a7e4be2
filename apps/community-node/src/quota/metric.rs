use crate::documents::user_api;

/// A metric with a daily quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Searches.
    Search,
    /// Requests for trends.
    Trending,
    /// Requests for trust.
    Trust,
    /// Reports.
    Report,
}

// === impl Metric ===

impl Metric {
    /// Name in responses, metrics and the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "index.search_requests",
            Self::Trending => "index.trending_requests",
            Self::Trust => "trust.requests",
            Self::Report => "moderation.report_submits",
        }
    }

    /// Limit of the metric; `None` is unlimited.
    pub(super) const fn limit(self, quotas: user_api::DailyQuotas) -> Option<u64> {
        match self {
            Self::Search => quotas.search_requests,
            Self::Trending => quotas.trending_requests,
            Self::Trust => quotas.trust_requests,
            Self::Report => quotas.report_submits,
        }
    }
}
