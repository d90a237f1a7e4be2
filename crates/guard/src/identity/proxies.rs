//! Whose headers are believed.

use std::net::IpAddr;

use http::HeaderMap;

use super::{
    Cidr, ForwardedBy,
    header::Believed,
    hops::{self, MAX_HOPS},
};

/// The proxies whose word about their client is believed; by default nobody's.
///
/// ```
/// use headgate_guard::{Cidr, ForwardedBy, TrustedProxies};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let proxies = TrustedProxies::from_iter(["10.0.0.0/8".parse::<Cidr>()?])
///     .forwarded_by(ForwardedBy::Forwarded);
/// assert!(proxies.trusts("10.0.0.7".parse()?));
/// assert!(!TrustedProxies::default().trusts("127.0.0.1".parse()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    /// Sorted, and none within another.
    ranges: Box<[Cidr]>,
    forwarded_by: ForwardedBy,
}

// === impl TrustedProxies ===

impl TrustedProxies {
    /// The same proxies, which write this header.
    #[must_use]
    pub fn forwarded_by(self, forwarded_by: ForwardedBy) -> Self {
        Self { forwarded_by, ..self }
    }

    /// Whether `address` is one of the proxies.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let after = self.ranges.partition_point(|range| range.network() <= address);
        after.checked_sub(1).is_some_and(|at| self.ranges[at].contains(address))
    }

    /// Who sent a request that arrived from `peer` with `headers`.
    ///
    /// A peer that is not trusted is the client, whatever the headers say. Otherwise the
    /// addresses in the [header that its proxies write](ForwardedBy) are walked from the
    /// right, all lines of it in their order, and the first that is not trusted is the
    /// client. If all are trusted, the left-most is.
    ///
    /// The walk ends at what is no address (`unknown`, `_hidden`, garbage) and after 32
    /// addresses or 4096 bytes: then the client is the last address before that, or the
    /// peer if there is none. Empty items are passed over, ports are ignored.
    ///
    /// The answer is never an IPv4 address in IPv6 clothes.
    ///
    /// ```
    /// use headgate_guard::{Cidr, TrustedProxies};
    /// use http::{HeaderMap, HeaderValue};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let proxies = TrustedProxies::from_iter(["10.0.0.0/8".parse::<Cidr>()?]);
    /// let mut headers = HeaderMap::new();
    /// // The first address is what the client claims, the second what the proxy saw.
    /// let value = HeaderValue::from_static("192.0.2.1, 198.51.100.7");
    /// headers.insert("x-forwarded-for", value);
    ///
    /// let client = proxies.client("10.0.0.7".parse()?, &headers);
    /// assert_eq!(client.to_string(), "198.51.100.7");
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if self.ranges.is_empty() || !self.trusts(peer) {
            return peer;
        }
        match self.forwarded_by.believed(headers) {
            Believed::XForwardedFor(lines) => self.walk(peer, hops::x_forwarded_for(&lines)),
            Believed::Forwarded(lines) => self.walk(peer, hops::forwarded(&lines)),
            Believed::XRealIp(lines) => hops::x_real_ip(&lines).unwrap_or(peer),
        }
    }

    fn walk(&self, peer: IpAddr, hops: impl Iterator<Item = IpAddr>) -> IpAddr {
        let mut client = peer;
        for hop in hops.take(MAX_HOPS) {
            client = hop;
            if !self.trusts(hop) {
                break;
            }
        }
        client
    }
}

impl FromIterator<Cidr> for TrustedProxies {
    fn from_iter<I: IntoIterator<Item = Cidr>>(ranges: I) -> Self {
        let mut ranges = Vec::from_iter(ranges);
        // A range comes after every range that it is within, so that one look behind is enough.
        ranges.sort_unstable();
        ranges.dedup_by(|range, kept| kept.contains(range.network()));
        Self { ranges: ranges.into(), forwarded_by: ForwardedBy::default() }
    }
}
