//! Ids of the leases under which places are held.

use std::{fmt, str::FromStr, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use headgate::LeaseId;
use thiserror::Error;

use crate::{ReservationId, ReservationIdTooLong, reservation::ReservedLimit};

/// The id of a lease. It describes the places that it holds, as a [`ReservationId`] describes its
/// units, so that every instance can renew and release it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLeaseId {
    described: ReservationId,
    text: String,
}

/// Text that is not the id of a lease.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not the id of a lease")]
pub struct PlaceLeaseIdError;

const PREFIX: &str = "lease_";

/// Characters of a [handle](PlaceLeaseId::handle): 60 bits.
const HANDLE_CHARS: usize = 10;

impl PlaceLeaseId {
    pub(crate) fn new(
        request_id: Option<&str>,
        lease: Duration,
        checks: usize,
        places: Vec<ReservedLimit>,
    ) -> Result<Self, ReservationIdTooLong> {
        let described = ReservationId::new(request_id, lease, checks, places)?;
        let text = described.as_str().replacen(ReservationId::PREFIX, PREFIX, 1);
        Ok(Self { described, text })
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the handle of a lease for people: the characters that follow `lease_` in its id, or
    /// `rres_` in that of a reservation. It does not allow to renew or release the lease, because
    /// the rest of the id is missing.
    pub fn handle(lease: LeaseId) -> String {
        let mut handle = URL_SAFE_NO_PAD.encode(lease.get().to_be_bytes());
        handle.truncate(HANDLE_CHARS);
        handle
    }

    /// Returns the length of the lease, unless a renewal names another.
    pub const fn duration(&self) -> Duration {
        self.described.ttl()
    }

    pub(crate) const fn described(&self) -> &ReservationId {
        &self.described
    }
}

impl FromStr for PlaceLeaseId {
    type Err = PlaceLeaseIdError;

    fn from_str(text: &str) -> Result<Self, PlaceLeaseIdError> {
        let rest = text.strip_prefix(PREFIX).ok_or(PlaceLeaseIdError)?;
        let described = format!("{}{rest}", ReservationId::PREFIX);
        let described = described.parse().map_err(|_| PlaceLeaseIdError)?;
        Ok(Self { described, text: text.to_owned() })
    }
}

impl fmt::Display for PlaceLeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_the_beginning_of_the_id() {
        for _ in 0..50 {
            let id = PlaceLeaseId::new(None, Duration::from_secs(30), 1, Vec::new()).unwrap();
            let handle = PlaceLeaseId::handle(id.described().lease());
            assert_eq!(handle.len(), HANDLE_CHARS);
            assert!(id.as_str().starts_with(&format!("lease_{handle}")), "{id}: {handle}");
            assert!(format!("lease_{handle}").parse::<PlaceLeaseId>().is_err(), "{handle}");
        }
    }
}
