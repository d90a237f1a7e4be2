//! The user API's document.

use std::ops::RangeInclusive;

use crate::{document::Document, penalty::PenaltySettings, reader::Reader, source::Doubt};

/// What a limit in a minute can be. To close a door, stop the service behind it.
pub(crate) const PER_MINUTE: RangeInclusive<u64> = 1..=1_000_000;

/// What the user API runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserApiDocument {
    /// How often clients may call.
    pub rate_limit: UserApiRateLimit,
    /// How much of what a public key may use in a day.
    pub quota: DailyQuotas,
    /// The most requests for a subscription that wait at a time.
    pub max_pending_per_pubkey: u64,
}

/// How often clients may call in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserApiRateLimit {
    /// Whether anybody is limited; bootstrap always is.
    pub enabled: bool,
    /// Signing in, by address: challenges and answers together.
    pub auth_per_minute: u64,
    /// What everybody may read, by address.
    pub public_per_minute: u64,
    /// What needs a token, where neither of the two below says something else.
    pub protected_per_minute: u64,
    /// What needs a token, by address.
    pub by_ip: Option<u64>,
    /// What needs a token, by public key.
    pub by_pubkey: Option<u64>,
    /// Searches, by address and by public key: they keep a processor busy.
    pub search_per_minute: u64,
    /// Signing in as an administrator, by address.
    pub admin_login_per_minute: u64,
    /// Penalties for those who are denied again and again, if there are some.
    pub penalty: Option<PenaltySettings>,
}

/// How much a public key may use in a day; `None` is as much as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyQuotas {
    /// Searches.
    pub search_requests: Option<u64>,
    /// Looks at trends.
    pub trending_requests: Option<u64>,
    /// Questions of trust.
    pub trust_requests: Option<u64>,
    /// Reports.
    pub report_submits: Option<u64>,
}

// === impl UserApiDocument ===

impl Document for UserApiDocument {
    const SERVICE: &'static str = "user-api";

    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            rate_limit: reader.section("rate_limit", UserApiRateLimit::read),
            quota: reader.section("quota", DailyQuotas::read),
            max_pending_per_pubkey: reader.section("subscription_request", |section| {
                section.number("max_pending_per_pubkey", 1..=1_000, 5)
            }),
        }
    }

    fn safe(_: &Doubt) -> Self {
        Self {
            rate_limit: UserApiRateLimit::SAFE,
            // Quotas are kept by the ledger, which is as far away as the document.
            quota: DailyQuotas::FREE,
            max_pending_per_pubkey: 1,
        }
    }
}

impl Default for UserApiDocument {
    fn default() -> Self {
        Self::read(&mut Reader::new(None, String::new()))
    }
}

// === impl UserApiRateLimit ===

impl UserApiRateLimit {
    const SAFE: Self = Self {
        enabled: true,
        auth_per_minute: 5,
        public_per_minute: 30,
        protected_per_minute: 30,
        by_ip: None,
        by_pubkey: None,
        search_per_minute: 8,
        admin_login_per_minute: 3,
        penalty: None,
    };

    fn read(reader: &mut Reader<'_>) -> Self {
        let enabled = enabled(reader);
        // What older documents say for both.
        let usual = reader.number("per_minute", PER_MINUTE, 120);
        let (by_ip, by_pubkey) = reader.section("http", |http| {
            let by_ip = http.optional_number("by_ip", PER_MINUTE);
            (by_ip, http.optional_number("by_pubkey", PER_MINUTE))
        });
        Self {
            enabled,
            auth_per_minute: reader.number("auth_per_minute", PER_MINUTE, 20),
            public_per_minute: reader.number("public_per_minute", PER_MINUTE, usual),
            protected_per_minute: reader.number("protected_per_minute", PER_MINUTE, usual),
            by_ip,
            by_pubkey,
            search_per_minute: reader.number("search_per_minute", PER_MINUTE, 30),
            admin_login_per_minute: reader.number("admin_login_per_minute", PER_MINUTE, 5),
            penalty: PenaltySettings::read(reader),
        }
    }

    /// What needs a token: of an address, and of a public key.
    pub fn protected(&self) -> (u64, u64) {
        let usual = self.protected_per_minute;
        (self.by_ip.unwrap_or(usual), self.by_pubkey.unwrap_or(usual))
    }
}

// === impl DailyQuotas ===

impl DailyQuotas {
    /// What everybody has.
    pub const FREE: Self = Self {
        search_requests: Some(100),
        trending_requests: Some(100),
        trust_requests: Some(100),
        report_submits: Some(20),
    };

    fn read(reader: &mut Reader<'_>) -> Self {
        let unlimited = reader.flag("unlimited", false);
        let mut per_day = |name, usual: Option<u64>| {
            let given = reader.given_number(name, 1..=1_000_000_000);
            given.or(usual.filter(|_| !unlimited))
        };
        Self {
            search_requests: per_day("search_requests_per_day", Self::FREE.search_requests),
            trending_requests: per_day("trending_requests_per_day", Self::FREE.trending_requests),
            trust_requests: per_day("trust_requests_per_day", Self::FREE.trust_requests),
            report_submits: per_day("report_submits_per_day", Self::FREE.report_submits),
        }
    }
}

/// Whether a section's limits are in force.
pub(crate) fn enabled(reader: &mut Reader<'_>) -> bool {
    reader.flag("enabled", true)
}
