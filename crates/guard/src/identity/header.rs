//! Which header is believed.

use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, header::FORWARDED};
use thiserror::Error;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Which header the trusted proxies write.
///
/// A proxy that writes one of these headers passes the others on as the client sent
/// them. So only the one that it writes can be believed, and a request does not show
/// which one that is: the operator has to say it. Naming the header is right in every
/// deployment; the default is right where every request from a trusted proxy carries
/// the first of these headers that the proxies write, and none before it that a
/// client could have added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForwardedBy {
    /// `X-Forwarded-For`; if that is absent `Forwarded`; if both are absent `X-Real-IP`.
    ///
    /// `X-Forwarded-For` comes first because it is what nearly all proxies write, and
    /// they write it into every request: then nothing that a client adds is looked at.
    /// It is wrong for proxies that write only another header and let a client's
    /// `X-Forwarded-For` pass.
    #[default]
    FirstPresent,
    /// `X-Forwarded-For` alone.
    XForwardedFor,
    /// `Forwarded` (RFC 7239) alone.
    Forwarded,
    /// `X-Real-IP` alone: one address, which the nearest proxy sets anew.
    XRealIp,
}

/// A name that is no [`ForwardedBy`]'s.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected {}", ForwardedBy::EXPECTED)]
pub struct ForwardedByError;

/// The header that is believed, as it was sent.
pub(super) enum Believed<'a> {
    XForwardedFor(http::header::GetAll<'a, HeaderValue>),
    Forwarded(http::header::GetAll<'a, HeaderValue>),
    XRealIp(http::header::GetAll<'a, HeaderValue>),
}

// === impl ForwardedBy ===

impl ForwardedBy {
    /// The names that it is read from.
    pub const EXPECTED: &str = "first_present, x_forwarded_for, forwarded or x_real_ip";

    /// A header that is there without a word in it is there: otherwise a client could
    /// choose which one is believed.
    pub(super) fn believed(self, headers: &HeaderMap) -> Believed<'_> {
        match self {
            Self::XForwardedFor => Believed::XForwardedFor(headers.get_all(&X_FORWARDED_FOR)),
            Self::Forwarded => Believed::Forwarded(headers.get_all(FORWARDED)),
            Self::XRealIp => Believed::XRealIp(headers.get_all(&X_REAL_IP)),
            Self::FirstPresent if headers.contains_key(&X_FORWARDED_FOR) => {
                Self::XForwardedFor.believed(headers)
            }
            Self::FirstPresent if headers.contains_key(FORWARDED) => {
                Self::Forwarded.believed(headers)
            }
            Self::FirstPresent => Self::XRealIp.believed(headers),
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
