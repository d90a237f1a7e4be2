//! What a service embeds to stand behind Headgate.
//!
//! | module | what it owns |
//! |---|---|
//! | [`identity`] | who the client of a request is, and by which text it is counted |

pub mod identity;

pub use identity::{AddressKey, Cidr, CidrError, ForwardedBy, TrustedProxies};
