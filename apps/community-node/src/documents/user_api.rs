//! The user API's document.

use headgate_service_config::{Document, LoadError, Reader, document};

use super::{PER_MINUTE, PenaltySettings, enabled};

/// Settings of the user API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserApiDocument {
    /// Rate limits of clients.
    pub rate_limit: UserApiRateLimit,
    /// Daily quotas of a public key.
    pub quota: DailyQuotas,
    /// Maximum number of pending subscription requests of a public key.
    pub max_pending_per_pubkey: u64,
}

/// Rate limits of clients per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserApiRateLimit {
    /// True if limits are in force. Bootstrap is always limited.
    pub enabled: bool,
    /// Sign-in requests by address: challenges and answers together.
    pub auth_per_minute: u64,
    /// Public requests by address.
    pub public_per_minute: u64,
    /// Requests with a token; default of `by_ip` and `by_pubkey`.
    pub protected_per_minute: u64,
    /// Requests with a token by address.
    pub by_ip: Option<u64>,
    /// Requests with a token by public key.
    pub by_pubkey: Option<u64>,
    /// Searches by address and by public key, which are CPU-bound.
    pub search_per_minute: u64,
    /// Admin logins by address.
    pub admin_login_per_minute: u64,
    /// Penalties of clients that exceed their limits repeatedly, if any.
    pub penalty: Option<PenaltySettings>,
}

/// Daily quotas of a public key; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyQuotas {
    /// Searches.
    pub search_requests: Option<u64>,
    /// Requests for trends.
    pub trending_requests: Option<u64>,
    /// Requests for trust scores.
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

    fn safe_defaults(_: &LoadError) -> Self {
        Self {
            rate_limit: UserApiRateLimit::SAFE,
            // The ledger that counts quotas is as unavailable as the document.
            quota: DailyQuotas::FREE,
            max_pending_per_pubkey: 1,
        }
    }
}

impl Default for UserApiDocument {
    fn default() -> Self {
        document::defaults()
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
        // Older documents set public and protected requests with one field.
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

    /// Requests with a token per minute: of an address, and of a public key.
    pub fn protected(&self) -> (u64, u64) {
        let usual = self.protected_per_minute;
        (self.by_ip.unwrap_or(usual), self.by_pubkey.unwrap_or(usual))
    }
}

// === impl DailyQuotas ===

impl DailyQuotas {
    /// Default quotas.
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
