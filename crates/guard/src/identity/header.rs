//! The forwarding header that is trusted.

use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use thiserror::Error;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// The header that the trusted proxies write.
///
/// A proxy that writes one of these headers passes the others on as the client sent them, so only
/// the one that it writes can be trusted. A request does not show which one that is: configure it.
/// The default is correct if the proxies write `X-Forwarded-For` into every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ForwardedBy {
    /// `X-Forwarded-For`; if that is absent `Forwarded`; if both are absent `X-Real-IP`.
    ///
    /// Correct for nearly all proxies, which write `X-Forwarded-For` into every request. Wrong for
    /// proxies that write only another header and pass on a client's `X-Forwarded-For`.
    #[default]
    FirstPresent,
    /// Only `X-Forwarded-For`.
    XForwardedFor,
    /// Only `Forwarded` (RFC 7239).
    Forwarded,
    /// Only `X-Real-IP`: one address, which the nearest proxy sets.
    XRealIp,
}

/// Unknown name of a [`ForwardedBy`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected {}", ForwardedBy::EXPECTED)]
pub struct ForwardedByError;

/// The trusted header of a request.
pub(super) enum TrustedHeader<'a> {
    XForwardedFor(http::header::GetAll<'a, HeaderValue>),
    Forwarded(http::header::GetAll<'a, HeaderValue>),
    XRealIp(http::header::GetAll<'a, HeaderValue>),
}

// === impl ForwardedBy ===

impl ForwardedBy {
    /// The names that are parsed.
    pub const EXPECTED: &str = "first_present, x_forwarded_for, forwarded or x_real_ip";

    /// The trusted header. An empty header counts as present: otherwise a client could choose which
    /// one is used.
    pub(super) fn trusted(self, headers: &HeaderMap) -> TrustedHeader<'_> {
        match self {
            Self::XForwardedFor => TrustedHeader::XForwardedFor(headers.get_all(&X_FORWARDED_FOR)),
            Self::Forwarded => TrustedHeader::Forwarded(headers.get_all(FORWARDED)),
            Self::XRealIp => TrustedHeader::XRealIp(headers.get_all(&X_REAL_IP)),
            Self::FirstPresent if headers.contains_key(&X_FORWARDED_FOR) => {
                Self::XForwardedFor.trusted(headers)
            }
            Self::FirstPresent if headers.contains_key(FORWARDED) => {
                Self::Forwarded.trusted(headers)
            }
            Self::FirstPresent => Self::XRealIp.trusted(headers),
        }
    }
}

impl FromStr for ForwardedBy {
    type Err = ForwardedByError;

    fn from_str(name: &str) -> Result<Self, ForwardedByError> {
        match name {
            "first_present" => Ok(Self::FirstPresent),
            "x_forwarded_for" => Ok(Self::XForwardedFor),
            "forwarded" => Ok(Self::Forwarded),
            "x_real_ip" => Ok(Self::XRealIp),
            _ => Err(ForwardedByError),
        }
    }
}
