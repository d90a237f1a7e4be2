use crate::documents::user_api;

/// What is counted by the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    /// Searches.
    Search,
    /// Looks at trends.
    Trending,
    /// Questions of trust.
    Trust,
    /// Reports.
    Report,
}

// === impl Metric ===

impl Metric {
    /// The name in answers, metrics and the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "index.search_requests",
            Self::Trending => "index.trending_requests",
            Self::Trust => "trust.requests",
            Self::Report => "moderation.report_submits",
        }
    }

    /// How much of it `quotas` allow; `None` is no limit.
    pub(super) const fn limit(self, quotas: user_api::DailyQuotas) -> Option<u64> {
        match self {
            Self::Search => quotas.search_requests,
            Self::Trending => quotas.trending_requests,
            Self::Trust => quotas.trust_requests,
            Self::Report => quotas.report_submits,
        }
    }
}
