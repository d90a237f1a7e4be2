//! Namespaces of error codes: `SYS_RATELIMIT_*` and `SYS_QUOTA_*`.

/// The namespace of the codes of errors that every API has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Rules and checks, and everything except quotas.
    RateLimit,
    /// Quotas and their events.
    Quota,
}

/// The code with this name in a namespace.
#[macro_export]
macro_rules! error_code {
    ($namespace:expr, $name:literal) => {
        match $namespace {
            $crate::Namespace::RateLimit => concat!("SYS_RATELIMIT_", $name),
            $crate::Namespace::Quota => concat!("SYS_QUOTA_", $name),
        }
    };
}
