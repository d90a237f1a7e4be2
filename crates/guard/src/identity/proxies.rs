//! Trusted proxies, and the client behind them.

use std::net::IpAddr;

use http::HeaderMap;

use super::{
    Cidr, ForwardedBy,
    header::TrustedHeader,
    hops::{self, MAX_HOPS},
};

/// Proxies whose forwarding headers are trusted. Default: none.
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
    /// Sorted; no range contains another.
    ranges: Box<[Cidr]>,
    forwarded_by: ForwardedBy,
}

// === impl TrustedProxies ===

impl TrustedProxies {
    /// Sets the header that the proxies write.
    #[must_use]
    pub fn forwarded_by(self, forwarded_by: ForwardedBy) -> Self {
        Self { forwarded_by, ..self }
    }

    /// Returns `true` if no proxy is trusted.
    pub const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns `true` if `address` is a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let after = self.ranges.partition_point(|range| range.network() <= address);
        after.checked_sub(1).is_some_and(|at| self.ranges[at].contains(address))
    }

    /// The client of a request that arrived from `peer` with `headers`.
    ///
    /// A peer that is not a trusted proxy is the client, and the headers are ignored. Otherwise the
    /// addresses in the [header that the proxies write](ForwardedBy) are read from the right,
    /// across all of its lines, and the first that is not a trusted proxy is the client. If all are
    /// trusted, the left-most is.
    ///
    /// Reading stops at anything that is not an address (`unknown`, `_hidden`, garbage) and after
    /// 32 addresses or 4096 bytes: the client is then the last address that was read, or the peer
    /// if there is none. Empty items are skipped; ports are ignored.
    ///
    /// The result is never an IPv4-mapped IPv6 address.
    ///
    /// ```
    /// use headgate_guard::{Cidr, TrustedProxies};
    /// use http::{HeaderMap, HeaderValue};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let proxies = TrustedProxies::from_iter(["10.0.0.0/8".parse::<Cidr>()?]);
    /// let mut headers = HeaderMap::new();
    /// // The client sent the first address; the proxy added the second.
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
        match self.forwarded_by.trusted(headers) {
            TrustedHeader::XForwardedFor(lines) => self.walk(peer, hops::x_forwarded_for(&lines)),
            TrustedHeader::Forwarded(lines) => self.walk(peer, hops::forwarded(&lines)),
            TrustedHeader::XRealIp(lines) => hops::x_real_ip(&lines).unwrap_or(peer),
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
        // A range sorts after every range that contains it, so comparing neighbours is enough.
        ranges.sort_unstable();
        ranges.dedup_by(|range, kept| kept.contains(range.network()));
        Self { ranges: ranges.into(), forwarded_by: ForwardedBy::default() }
    }
}
