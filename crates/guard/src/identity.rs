//! The client's address behind trusted proxies.
//!
//! Clients can send any header, so forwarding headers are read only if the peer of the connection
//! is a trusted proxy, and then from the right: the right-most address was added by that proxy, the
//! one before it by the proxy before it. The first address that is not a trusted proxy is the
//! client. Everything to the left of it was sent by the client and is ignored.
//!
//! | module | contents |
//! |---|---|
//! | `cidr` | [`Cidr`]: a range of addresses |
//! | `proxies` | [`TrustedProxies`]: the proxies, and the search for the client |
//! | `header` | [`ForwardedBy`]: the header that the proxies write |
//! | `hops` | bounded parsing of forwarding headers |
//! | `address_key` | [`AddressKey`]: the text that an address is counted by |
//! | `ipv6_prefix` | [`Ipv6Prefix`]: the length of networks that count as one client |
//!
//! ```
//! use headgate_guard::{AddressKey, Cidr, TrustedProxies};
//! use http::HeaderMap;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ranges = ["10.0.0.0/8", "fd00::/8"].into_iter().map(str::parse::<Cidr>);
//! let proxies: TrustedProxies = ranges.collect::<Result<_, _>>()?;
//!
//! // The client sent 192.0.2.1; the proxy added the address that it saw.
//! let mut headers = HeaderMap::new();
//! headers.insert("x-forwarded-for", "192.0.2.1, 2001:db8:1:2::3".parse()?);
//!
//! let client = proxies.client("10.0.0.7".parse()?, &headers);
//! assert_eq!(&*AddressKey::of(client), "2001:db8:1:2::/64");
//!
//! // Headers from any other peer are ignored.
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
