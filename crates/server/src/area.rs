//! Which part of the house a request is about: each has error codes of its own.

/// A part of the house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// Rules and checks, and whatever belongs to no part alone.
    RateLimit,
    /// Quotas.
    Quota,
}

/// The code of an error that every area knows.
macro_rules! code {
    ($area:expr, $name:literal) => {
        match $area {
            $crate::area::Area::RateLimit => concat!("SYS_RATELIMIT_", $name),
            $crate::area::Area::Quota => concat!("SYS_QUOTA_", $name),
        }
    };
}

pub(crate) use code;
