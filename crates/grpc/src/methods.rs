//! All methods. Metrics and log lines use these names, never the path that a caller sent.

use std::time::Duration;

use headgate_api::Namespace;
use headgate_quota::Reservation;
use headgate_ratelimit::ReservationId;

/// Maximum time without a message on a reflection stream.
const REFLECTION_IDLE: Duration = Duration::from_secs(60);

/// A method of a service.
#[derive(Debug)]
pub(super) struct Method {
    pub(super) service: &'static str,
    pub(super) name: &'static str,
    path: &'static str,
}

macro_rules! methods {
    ($($service:literal { $($name:literal)+ })+) => {
        [$($(Method { service: $service, name: $name, path: concat!("/", $service, "/", $name) }),+),+]
    };
}

/// All methods, the most frequently called first.
pub(super) static METHODS: [Method; 47] = methods! {
    "k1s0.system.ratelimit.v1.RateLimitService" {
        "CheckRateLimit" "CreateRule" "GetRule" "GetUsage" "ResetLimit" "ListRules" "UpdateRule" "DeleteRule"
        "Reserve" "UseReservation" "MeterReservation" "SettleReservation" "CancelReservation"
        "GetReservation" "RefundCheck" "Acquire" "RenewLease" "ReleaseLease"
        "CheckRateLimits" "SetOverride" "GetOverride" "ListOverrides" "DeleteOverride"
        "ListHolders" "EndLease"
    }
    "k1s0.system.quota.v1.QuotaService" {
        "CreateQuotaPolicy" "GetQuotaPolicy" "ListQuotaPolicies" "UpdateQuotaPolicy" "DeleteQuotaPolicy"
        "GetQuotaUsage" "IncrementQuotaUsage" "CheckQuota" "ResetQuotaUsage" "GetQuotaHistory"
        "RefundQuotaUsage" "ReserveQuota" "UseQuotaReservation" "SettleQuotaReservation"
        "CancelQuotaReservation" "GetQuotaReservation" "MeterQuotaReservation"
    }
    "envoy.service.ratelimit.v3.RateLimitService" { "ShouldRateLimit" }
    "grpc.health.v1.Health" { "Check" "Watch" }
    "grpc.reflection.v1.ServerReflection" { "ServerReflectionInfo" }
    "grpc.reflection.v1alpha.ServerReflection" { "ServerReflectionInfo" }
};

impl Method {
    /// Returns true if it describes the services.
    pub(super) fn is_reflection(&self) -> bool {
        self.name == "ServerReflectionInfo"
    }

    /// Maximum time without a message, if callers send a stream of them.
    pub(super) fn stream_idle(&self) -> Option<Duration> {
        match self.name {
            // Then the reservation has expired, whatever its TTL was.
            "MeterReservation" => Some(ReservationId::MAX_TTL),
            "MeterQuotaReservation" => Some(Reservation::MAX_TTL),
            // Tools open another stream when they need it.
            "ServerReflectionInfo" => Some(REFLECTION_IDLE),
            _ => None,
        }
    }

    /// The namespace of its error codes.
    pub(super) fn namespace(&self) -> Namespace {
        if self.service.starts_with("k1s0.system.quota.") {
            Namespace::Quota
        } else {
            Namespace::RateLimit
        }
    }
}

/// Returns the index of the method at `path`.
pub(super) fn find(path: &str) -> Option<usize> {
    METHODS.iter().position(|method| method.path == path)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;
    use crate::proto::DESCRIPTORS;

    #[test]
    fn every_method_of_the_proto_files_can_be_called() {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
        let mut described = Vec::new();
        for file in &files {
            for service in &file.service {
                for method in &service.method {
                    let service = format!("{}.{}", file.package(), service.name());
                    described.push(format!("/{service}/{}", method.name()));
                }
            }
        }
        let ours = METHODS.iter().filter(|method| !method.service.starts_with("grpc."));
        assert_eq!(described, ours.map(|method| method.path).collect::<Vec<_>>());
        for path in described {
            assert!(find(&path).is_some(), "{path}");
        }
        assert_eq!(find("/k1s0.system.ratelimit.v1.RateLimitService/Nothing"), None);
    }
}
