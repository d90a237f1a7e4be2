//! Attributes of a request.

use std::{
    any::Any,
    borrow::Cow,
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use headgate_guard::{
    AddressKey, Ipv6Prefix, PeerAddress, RequestHead, TrustedProxies, UnknownPeers,
};
use headgate_ratelimit::{AttributeError, Attributes, Scope, attributes::identifier};
use http::HeaderName;

use crate::UnknownPeer;

/// What is taken from each request as an attribute, by the name of the attribute.
///
/// A request without the value lacks the attribute, so that rules about it do not apply: a rule with
/// `{exists: false}` can limit such requests. Clients choose headers and paths. Values may be of any
/// length that the service accepts. The address and the network are never missing: requests without
/// a peer address are [refused](Self::unknown_peers).
///
/// ```
/// use headgate_guard_rules::Extractors;
/// use http::HeaderName;
///
/// /// The tenant that the authentication middleware found.
/// #[derive(Clone)]
/// struct Tenant(String);
///
/// let extractors = Extractors::new()
///     .method("method")
///     .path("path")
///     .address("address")
///     .header("plan", HeaderName::from_static("x-plan"))
///     .extension("tenant", |tenant: &Tenant| Some(&tenant.0));
/// ```
#[derive(Clone, Default)]
pub struct Extractors {
    attributes: Vec<(Box<str>, Extractor)>,
    proxies: TrustedProxies,
    ipv6: Ipv6Prefix,
    unknown_peers: UnknownPeers,
}

#[derive(Clone)]
enum Extractor {
    Method,
    Path,
    Address,
    Network,
    Header(HeaderName),
    Constant(Box<str>),
    Closure(Arc<Find>),
}

/// Client address of all requests whose peer address is unknown.
const UNKNOWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

type Find = dyn for<'a> Fn(&RequestHead<'a>) -> Option<Cow<'a, str>> + Send + Sync;

// === impl Extractors ===

impl Extractors {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// The method.
    #[must_use]
    pub fn method(self, attribute: &str) -> Self {
        self.with(attribute, Extractor::Method)
    }

    /// The path without the query. Percent-encoding is decoded.
    #[must_use]
    pub fn path(self, attribute: &str) -> Self {
        self.with(attribute, Extractor::Path)
    }

    /// The client's address, behind [trusted proxies](Self::trusted_proxies) too: see
    /// [`PeerAddress::find`].
    #[must_use]
    pub fn address(self, attribute: &str) -> Self {
        self.with(attribute, Extractor::Address)
    }

    /// The client's IPv4 address, or its IPv6 network, such as `2001:db8:1:2::/64`, because a client
    /// can use any address in it: to count by, where [`address`](Self::address) is for conditions.
    /// [`ipv6_prefix`](Self::ipv6_prefix) sets the length of the networks.
    #[must_use]
    pub fn network(self, attribute: &str) -> Self {
        self.with(attribute, Extractor::Network)
    }

    /// The value of a header. Lines of the same name are joined with commas.
    #[must_use]
    pub fn header(self, attribute: &str, name: HeaderName) -> Self {
        self.with(attribute, Extractor::Header(name))
    }

    /// The same value for all requests, such as the name of the service.
    #[must_use]
    pub fn constant(self, attribute: &str, value: &str) -> Self {
        self.with(attribute, Extractor::Constant(value.into()))
    }

    /// A value that outer middleware has left in the request's extensions.
    #[must_use]
    pub fn extension<T, F>(self, attribute: &str, find: F) -> Self
    where
        T: Any + Send + Sync,
        F: for<'a> Fn(&'a T) -> Option<&'a str> + Send + Sync + 'static,
    {
        self.from_fn(attribute, move |head| find(head.extensions.get::<T>()?).map(Cow::Borrowed))
    }

    /// A value that a closure finds.
    #[must_use]
    pub fn from_fn<F>(self, attribute: &str, find: F) -> Self
    where
        F: for<'a> Fn(&RequestHead<'a>) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        self.with(attribute, Extractor::Closure(Arc::new(find)))
    }

    /// Sets the proxies whose forwarding headers are trusted.
    #[must_use]
    pub fn trusted_proxies(self, proxies: TrustedProxies) -> Self {
        Self { proxies, ..self }
    }

    /// Sets the length of the IPv6 networks that count as one client. Default: 64 bits.
    #[must_use]
    pub fn ipv6_prefix(self, ipv6: Ipv6Prefix) -> Self {
        Self { ipv6, ..self }
    }

    /// Sets the treatment of requests without a peer address, if the address or the network is an
    /// attribute. Default: [refuse](UnknownPeers::Refuse). Those that are counted together have the
    /// address `0.0.0.0`.
    #[must_use]
    pub fn unknown_peers(self, unknown_peers: UnknownPeers) -> Self {
        Self { unknown_peers, ..self }
    }

    /// Returns the attributes of a request.
    ///
    /// # Errors
    ///
    /// The address or the network is an attribute, and the peer address of the request is unknown.
    pub fn extract<'a>(&'a self, head: &RequestHead<'a>) -> Result<Attributes<'a>, UnknownPeer> {
        let mut attributes = Attributes::default();
        for (name, extractor) in &self.attributes {
            let Some(value) = self.value(extractor, head)? else { continue };
            let is_identifier = Scope::ALL.iter().any(|scope| scope.name() == &**name);
            let value = if is_identifier { identifier(value) } else { value };
            // Names are valid and distinct.
            let _ = attributes.insert_unbounded(&**name, value);
        }
        Ok(attributes)
    }

    fn value<'a>(
        &'a self,
        extractor: &'a Extractor,
        head: &RequestHead<'a>,
    ) -> Result<Option<Cow<'a, str>>, UnknownPeer> {
        Ok(match extractor {
            Extractor::Method => Some(head.method.as_str().into()),
            Extractor::Path => Some(decoded(head.uri.path())),
            Extractor::Address => Some(self.client(head)?.to_string().into()),
            Extractor::Network => {
                let network = AddressKey::grouped("", self.client(head)?, self.ipv6);
                Some(network.as_str().to_owned().into())
            }
            Extractor::Header(name) => header(name, head),
            Extractor::Constant(value) => Some(Cow::Borrowed(value)),
            Extractor::Closure(find) => find(head),
        })
    }

    fn client(&self, head: &RequestHead<'_>) -> Result<IpAddr, UnknownPeer> {
        match (PeerAddress::find(head.extensions), self.unknown_peers) {
            (Some(peer), _) => Ok(self.proxies.client(peer, head.headers)),
            (None, UnknownPeers::CountTogether) => Ok(UNKNOWN_ADDRESS),
            // A missing attribute would lift the rules about it.
            (None, _) => Err(UnknownPeer),
        }
    }

    fn with(mut self, attribute: &str, extractor: Extractor) -> Self {
        self.attributes.push((attribute.into(), extractor));
        self
    }

    /// Returns an error if a name is invalid or occurs twice, or if there are too many.
    pub(crate) fn validate(&self) -> Result<(), AttributeError> {
        let mut attributes = Attributes::default();
        self.attributes.iter().try_for_each(|(name, _)| attributes.insert(&**name, ""))
    }
}

impl fmt::Debug for Extractors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.attributes.iter().map(|(name, _)| name)).finish()
    }
}

fn header<'a>(name: &HeaderName, head: &RequestHead<'a>) -> Option<Cow<'a, str>> {
    let mut lines = head.headers.get_all(name).iter();
    let first = String::from_utf8_lossy(lines.next()?.as_bytes());
    Some(lines.fold(first, |joined, line| {
        Cow::Owned(format!("{joined}, {}", String::from_utf8_lossy(line.as_bytes())))
    }))
}

/// Decodes percent-encoding. What is not UTF-8 then is replaced.
fn decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (bytes, mut decoded, mut at) = (path.as_bytes(), Vec::with_capacity(path.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let escape = match bytes[at..] {
            [b'%', high, low, ..] => digit(high).zip(digit(low)),
            _ => None,
        };
        let (byte, length) = escape.map_or((*byte, 1), |(high, low)| ((high * 16 + low) as u8, 3));
        decoded.push(byte);
        at += length;
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}
