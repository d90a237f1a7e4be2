//! Namespaces of error codes: `SYS_RATELIMIT_*` and `SYS_QUOTA_*`.

/// The namespace of the codes of errors that every API has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// Rules and checks, and everything except quotas.
    RateLimit,
    Quota,
}

/// The code with this name in a namespace.
macro_rules! code {
    ($namespace:expr, $name:literal) => {
        match $namespace {
            $crate::error_codes::Namespace::RateLimit => concat!("SYS_RATELIMIT_", $name),
            $crate::error_codes::Namespace::Quota => concat!("SYS_QUOTA_", $name),
        }
    };
}

pub(crate) use code;
