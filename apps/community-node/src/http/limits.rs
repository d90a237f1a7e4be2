//! Classes of routes, and their limits by the documents in force.

use std::sync::PoisonError;

use headgate_guard::{
    Allowance, Class, Denied, InFlightLimits, Observer, Policy, PolicyError, Routes,
};
use prometheus::IntCounterVec;
use tracing::error;

use super::Http;
use crate::{
    Node,
    documents::{BootstrapDocument, PenaltySettings, UserApiDocument},
    metrics::{Metrics, Reason},
};

/// Signing in: strict limits.
const AUTH: &str = "auth";
/// Public data.
const PUBLIC: &str = "public";
/// Bootstrap, which is always limited.
const BOOTSTRAP: &str = "bootstrap";
/// Requests with a token.
const PROTECTED: &str = "protected";
/// Searches, which are CPU-bound: strict limits, and one at a time.
const SEARCH: &str = "search";
/// Admin logins, which are always limited.
const ADMIN_LOGIN: &str = "admin-login";
/// Requests of administrators.
const ADMIN: &str = "admin";
/// Health and metrics.
const PROBES: &str = "probes";

/// Maximum number of concurrent searches of one address, and of all.
const SEARCHES: InFlightLimits = InFlightLimits::new(1, 256);

/// Requests of administrators per minute.
const ADMIN_PER_MINUTE: u64 = 300;

/// Requests for health and metrics per minute of an address.
const PROBES_PER_MINUTE: u64 = 600;

/// Maps routes to classes.
pub(super) fn routes() -> Routes {
    Routes::new()
        .prefix("/v1/auth", AUTH)
        .prefix("/v1/bootstrap", BOOTSTRAP)
        .prefix("/v1/search", SEARCH)
        .prefix("/v1/trending", PROTECTED)
        .prefix("/v1/trust", PROTECTED)
        .prefix("/v1/reports", PROTECTED)
        .prefix("/v1/admin", ADMIN)
        .prefix("/v1/admin/login", ADMIN_LOGIN)
        .prefix("/healthz", PROBES)
        .prefix("/metrics", PROBES)
        .otherwise(PUBLIC)
}

/// Policy of the documents in force.
pub(super) fn of(node: &Node) -> Result<Policy, PolicyError> {
    let (users, bootstrap) = (node.user_api.current(), node.bootstrap.current());
    policy(&users.document, &bootstrap.document)
}

fn policy(users: &UserApiDocument, bootstrap: &BootstrapDocument) -> Result<Policy, PolicyError> {
    let rates = users.rate_limit;
    let (by_ip, by_pubkey) = rates.protected();
    let first_contact = bootstrap.by_ip.unwrap_or(rates.public_per_minute);
    let classes = [
        Class::new(AUTH)?.by_address(per_minute(rates.auth_per_minute)),
        Class::new(PUBLIC)?.by_address(per_minute(rates.public_per_minute)),
        Class::new(BOOTSTRAP)?.by_address(per_minute(first_contact)).always_on(),
        // The first limit stops clients without tokens. It is twice the others, so that a key that
        // is denied by them does not use up the address of its neighbours.
        Class::new(PROTECTED)?
            .by_address(per_minute(by_ip.saturating_mul(2)))
            .by_subject(per_minute(by_pubkey))
            .by_address_after_auth(per_minute(by_ip)),
        Class::new(SEARCH)?
            .by_address(per_minute(rates.search_per_minute.saturating_mul(2)))
            .by_subject(per_minute(rates.search_per_minute))
            .by_address_after_auth(per_minute(rates.search_per_minute))
            .in_flight(SEARCHES),
        Class::new(ADMIN_LOGIN)?.by_address(per_minute(rates.admin_login_per_minute)).always_on(),
        Class::new(ADMIN)?.by_address(per_minute(ADMIN_PER_MINUTE)),
        Class::new(PROBES)?.by_address(per_minute(PROBES_PER_MINUTE)),
    ];
    let policy = Policy::new(classes)?.enabled(rates.enabled);
    Ok(match rates.penalty.and_then(PenaltySettings::escalation) {
        Some(escalation) => policy.escalation(escalation),
        None => policy,
    })
}

fn per_minute(count: u64) -> Allowance {
    // Documents are bounded; a value out of bounds would admit nothing.
    let nothing = Allowance::nothing(std::time::Duration::from_secs(60));
    Allowance::per_minute(count).unwrap_or(nothing)
}

/// Applies the limits of every new document; never returns.
pub(super) async fn follow(http: &Http) {
    let node = &http.node;
    let (mut users, mut bootstrap) = (node.user_api.subscribe(), node.bootstrap.subscribe());
    loop {
        replace(http);
        let changed = tokio::select! {
            changed = users.changed() => changed,
            changed = bootstrap.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Applies the limits of the documents in force.
pub(super) fn replace(http: &Http) {
    // Reading and replacing are one step, so that the newest document wins.
    let _turn = http.limits_turn.lock().unwrap_or_else(PoisonError::into_inner);
    let replaced = of(&http.node).and_then(|policy| http.guard.replace(policy));
    if let Err(error) = replaced {
        error!(%error, "failed to apply limits; keeping the last ones");
    }
}

/// Counts denials of the guard, without identifying clients.
pub(super) struct HttpObserver {
    metrics: Metrics,
    limited: IntCounterVec,
}

// === impl HttpObserver ===

impl HttpObserver {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self { limited: metrics.rate_limited.clone(), metrics: metrics.clone() }
    }
}

impl Observer for HttpObserver {
    fn rejected(&self, class: &str, denied: &Denied) {
        let service = match class {
            BOOTSTRAP => "bootstrap",
            ADMIN | ADMIN_LOGIN => "admin",
            _ => "user-api",
        };
        self.metrics.reject(service, Reason::RateLimit);
        self.limited.with_label_values(&[service, class, denied.reason.name()]).inc();
    }
}

#[cfg(test)]
mod tests {
    use headgate_guard::Guard;
    use headgate_service_config::{Document, LoadError};

    use super::*;

    #[test]
    fn every_document_makes_a_policy_with_the_classes_of_the_routes() {
        let documents = [UserApiDocument::default(), Document::safe_defaults(&LoadError::Missing)];
        for users in documents {
            let policy = policy(&users, &BootstrapDocument::default()).unwrap();
            Guard::builder(policy, routes()).build().unwrap();
        }
    }
}
