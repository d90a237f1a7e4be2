//! Who is the client of a request that may have come through proxies?
//!
//! Anybody can write anything into a header. So headers are read only if the
//! socket's peer is a proxy that the operator trusts, and then from the right: the
//! right-most address was written by that proxy, the one before it by the proxy
//! before it, and the first address that is no trusted proxy is the client. What
//! stands to the left of it came from the client itself, and is never looked at.
//!
//! | module | what it owns |
//! |---|---|
//! | `cidr` | [`Cidr`]: a range of addresses |
//! | `proxies` | [`TrustedProxies`]: whose headers are believed, and the walk |
//! | `header` | [`ForwardedBy`]: which header is walked |
//! | `hops` | the addresses in a header, from the right, within bounds |
//! | `address_key` | [`AddressKey`]: the text by which an address is counted |
//! | `ipv6_prefix` | [`Ipv6Prefix`]: how much of an IPv6 address counts |
//!
//! ```
//! use headgate_guard::{AddressKey, Cidr, TrustedProxies};
//! use http::HeaderMap;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ranges = ["10.0.0.0/8", "fd00::/8"].into_iter().map(str::parse::<Cidr>);
//! let proxies: TrustedProxies = ranges.collect::<Result<_, _>>()?;
//!
//! // The client pretended to be 192.0.2.1; the proxy wrote down who it really was.
//! let mut headers = HeaderMap::new();
//! headers.insert("x-forwarded-for", "192.0.2.1, 2001:db8:1:2::3".parse()?);
//!
//! let client = proxies.client("10.0.0.7".parse()?, &headers);
//! assert_eq!(&*AddressKey::of(client), "2001:db8:1:2::/64");
//!
//! // Whoever is not a trusted proxy speaks for itself alone.
//! let client = proxies.client("198.51.100.7".parse()?, &headers);
//! assert_eq!(&*AddressKey::with_prefix("ip:", client), "ip:198.51.100.7");
//! # Ok(())
//! # }
//! ```

mod address_key;
mod cidr;
mod header;
mod hops;
mod ipv6_prefix;
mod proxies;

pub use address_key::AddressKey;
pub use cidr::{Cidr, CidrError};
pub use header::{ForwardedBy, ForwardedByError};
pub use ipv6_prefix::{Ipv6Prefix, Ipv6PrefixError};
pub use proxies::TrustedProxies;
