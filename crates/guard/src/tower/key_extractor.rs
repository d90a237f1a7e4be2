//! Keys other than the client's address: headers, API keys, claims, paths, and combinations.
//!
//! | module | contents |
//! |---|---|
//! | `source` | the parts of a request that a key is made of |
//! | `request_key` | [`RequestKey`]: the digest that is counted |
//! | `claim` | the claims of a JSON Web Token |

#[cfg(feature = "jwt")]
mod claim;
mod request_key;
mod source;

use std::{any::Any, borrow::Cow, fmt, sync::Arc};

use http::HeaderName;

pub use self::request_key::RequestKey;
use self::{
    request_key::{Digest, Origin},
    source::Source,
};
use super::RequestHead;
use crate::AddressKey;

/// Extracts the key that a request is counted by, for [`Guard::layer_by_key`].
///
/// A key is one part of the request, or several of them joined with [`and`](Self::and).
/// Alternatives are joined with [`or`](Self::or). A part that is empty, that is longer than
/// [`MAX_VALUE_BYTES`](Self::MAX_VALUE_BYTES), or whose header was sent more than once is missing;
/// [`MissingKey`] says what happens then.
///
/// Values are hashed with SHA-256 before they are counted. Neither the store nor a log sees an API
/// key. A guessable value, such as an e-mail address, can still be guessed from its hash by anyone
/// who can read the store.
///
/// # Which values can be trusted?
///
/// A client that chooses its own key has as many allowances as it has keys. Headers, paths, and API
/// keys and tokens that have not been verified are such values: limit by address as well, or place
/// the layer inside the middleware that authenticates.
///
/// ```
/// use axum::{Router, routing::get};
/// use headgate_guard::{Allowance, Class, Guard, KeyExtractor, MissingKey, Policy, Routes};
/// use http::HeaderName;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let api = Class::new("api")?
///     .by_address(Allowance::per_minute(600)?)
///     .by_key(Allowance::per_minute(60)?);
/// let guard = Guard::builder(Policy::new([api])?, Routes::all("api")).build()?;
///
/// // 60 requests a minute for each API key and tenant.
/// let tenant = KeyExtractor::header(HeaderName::from_static("x-tenant"));
/// let key = KeyExtractor::api_key().and(tenant);
/// let app: Router = Router::new()
///     .route("/", get(async || "hello"))
///     .layer(guard.layer_by_key(key, MissingKey::UseAddress))
///     .layer(guard.layer());
/// # drop(app);
/// # Ok(())
/// # }
/// ```
///
/// [`Guard::layer_by_key`]: crate::Guard::layer_by_key
#[derive(Clone)]
pub struct KeyExtractor(Source);

/// Treatment of requests without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// It is counted by the client's address, with an allowance of the same size.
    UseAddress,
    /// It is refused: 400 over HTTP and `INVALID_ARGUMENT` over gRPC, unless another response is
    /// rendered.
    Refuse,
    /// It is counted together with all other requests without a key.
    Share,
}

// === impl KeyExtractor ===

impl KeyExtractor {
    /// Longest value that is used as a key or a part of one, in bytes.
    pub const MAX_VALUE_BYTES: usize = 8192;

    /// The client's address, behind trusted proxies too. IPv6 clients are counted by network.
    ///
    /// ```
    /// use headgate_guard::{AddressKey, KeyExtractor, RequestHead};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let request = http::Request::new(());
    /// # let head = RequestHead::of(&request);
    /// let key = |address: &str| -> Result<_, std::net::AddrParseError> {
    ///     let client = AddressKey::of(address.parse()?);
    ///     Ok(KeyExtractor::address().extract(&head, Some(&client)))
    /// };
    /// assert_eq!(key("2001:db8::1")?, key("2001:db8::2")?);
    /// assert_ne!(key("192.0.2.1")?, key("192.0.2.2")?);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn address() -> Self {
        Self(Source::Address)
    }

    /// The value of a header.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::{HeaderName, Request};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tenant = KeyExtractor::header(HeaderName::from_static("x-tenant"));
    /// let request = Request::get("/").header("X-Tenant", "acme").body(())?;
    /// assert!(tenant.extract(&RequestHead::of(&request), None).is_some());
    ///
    /// let without = Request::get("/").body(())?;
    /// assert!(tenant.extract(&RequestHead::of(&without), None).is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn header(name: HeaderName) -> Self {
        Self(Source::Header(name))
    }

    /// The API key in the `X-API-Key` header. For another header, use [`header`](Self::header); for
    /// `Authorization: Bearer`, use [`bearer_token`](Self::bearer_token).
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let request = Request::get("/").header("x-api-key", "s3cr3t").body(())?;
    /// let key = KeyExtractor::api_key().extract(&RequestHead::of(&request), None);
    /// assert!(!format!("{key:?}").contains("s3cr3t"));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn api_key() -> Self {
        Self(Source::Header(HeaderName::from_static("x-api-key")))
    }

    /// The token in the header `Authorization: Bearer <token>`.
    ///
    /// A client whose tokens are short-lived gets a new allowance with each. To count by the owner
    /// of the token, use [`jwt_claim`](Self::jwt_claim) or [`extension`](Self::extension).
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = |authorization: &str| -> Result<_, http::Error> {
    ///     let request = Request::get("/").header("authorization", authorization).body(())?;
    ///     Ok(KeyExtractor::bearer_token().extract(&RequestHead::of(&request), None))
    /// };
    /// assert_eq!(key("Bearer abc")?, key("bearer abc")?);
    /// assert!(key("Basic YWJj")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn bearer_token() -> Self {
        Self(Source::BearerToken)
    }

    /// A claim of the JSON Web Token in the `Authorization` header, such as `sub`: a text or a
    /// whole number at the top level of its payload.
    ///
    /// **The token is decoded, not verified.** Use this only if its signature and its expiry have
    /// been verified before the request gets here, by a gateway in front of the service, or
    /// middleware outside this layer. Otherwise any client can claim to be any other and use up its
    /// allowance. If that middleware leaves the claims in the request's extensions,
    /// [`extension`](Self::extension) is safer and faster.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // {"alg":"none"} . {"sub":"alice","exp":1} and {"sub":"alice","exp":2}
    /// let tokens = [
    ///     "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6MX0.",
    ///     "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsImV4cCI6Mn0.",
    /// ];
    /// let sub = KeyExtractor::jwt_claim("sub");
    /// let mut keys = Vec::new();
    /// for token in tokens {
    ///     let bearer = format!("Bearer {token}");
    ///     let request = Request::get("/").header("authorization", bearer).body(())?;
    ///     keys.push(sub.extract(&RequestHead::of(&request), None).ok_or("no claim")?);
    /// }
    /// assert_eq!(keys[0], keys[1], "another token for the same subject");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "jwt")]
    pub fn jwt_claim(name: &str) -> Self {
        Self(Source::Claim(name.into()))
    }

    /// A value that earlier middleware left in the request's extensions, such as a claim of a
    /// verified token.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// /// Claims that the authentication middleware has verified.
    /// #[derive(Clone)]
    /// struct Claims {
    ///     sub: String,
    /// }
    ///
    /// let sub = KeyExtractor::extension(|claims: &Claims| Some(&claims.sub));
    /// let mut request = Request::new(());
    /// assert!(sub.extract(&RequestHead::of(&request), None).is_none());
    /// request.extensions_mut().insert(Claims { sub: "alice".to_owned() });
    /// assert!(sub.extract(&RequestHead::of(&request), None).is_some());
    /// ```
    pub fn extension<T, F>(find: F) -> Self
    where
        T: Any + Send + Sync,
        F: for<'a> Fn(&'a T) -> Option<&'a str> + Send + Sync + 'static,
    {
        Self::from_fn(move |head| find(head.extensions.get::<T>()?).map(Cow::Borrowed))
    }

    /// The path, without the query. Percent-encoding is decoded. Apart from that the path is taken
    /// as it was sent: `/abc`, `//abc` and `/abc/` have different keys.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = |uri: &str| -> Result<_, http::Error> {
    ///     let request = Request::get(uri).body(())?;
    ///     Ok(KeyExtractor::path().extract(&RequestHead::of(&request), None))
    /// };
    /// assert_eq!(key("/a%62c?page=1")?, key("/abc?page=2")?);
    /// assert_ne!(key("/abc")?, key("/abd")?);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn path() -> Self {
        Self(Source::Path)
    }

    /// One segment of the path, counted from 0. Percent-encoding is decoded.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // /tenants/{tenant}/...
    /// let tenant = KeyExtractor::path_segment(1);
    /// let key = |uri: &str| -> Result<_, http::Error> {
    ///     let request = Request::get(uri).body(())?;
    ///     Ok(tenant.extract(&RequestHead::of(&request), None))
    /// };
    /// assert_eq!(key("/tenants/acme/users")?, key("/tenants/acme/invoices")?);
    /// assert!(key("/tenants")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub const fn path_segment(index: usize) -> Self {
        Self(Source::PathSegment(index))
    }

    /// A value that a closure finds.
    ///
    /// ```
    /// use std::borrow::Cow;
    ///
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = KeyExtractor::from_fn(|head| head.uri.host().map(Cow::Borrowed));
    /// let request = Request::get("http://acme.example/").body(())?;
    /// assert!(host.extract(&RequestHead::of(&request), None).is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_fn<F>(find: F) -> Self
    where
        F: for<'a> Fn(&RequestHead<'a>) -> Option<Cow<'a, str>> + Send + Sync + 'static,
    {
        Self(Source::Closure(Arc::new(find)))
    }

    /// Both values together. The key is missing if either of them is.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let key = |uri: &str, api_key: &str| -> Result<_, http::Error> {
    ///     let request = Request::get(uri).header("x-api-key", api_key).body(())?;
    ///     let both = KeyExtractor::api_key().and(KeyExtractor::path());
    ///     Ok(both.extract(&RequestHead::of(&request), None))
    /// };
    /// assert_ne!(key("/search", "a")?, key("/search", "b")?);
    /// assert_ne!(key("/search", "a")?, key("/export", "a")?);
    /// assert!(key("/search", "")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(Source::Both(Arc::new((self.0, other.0))))
    }

    /// The value of `self`, or else that of `other`. The two never share a key, even if their
    /// values are equal: a client without an account cannot use up the allowance of one with an
    /// account.
    ///
    /// ```
    /// use headgate_guard::{KeyExtractor, RequestHead};
    /// use http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let credential = KeyExtractor::api_key().or(KeyExtractor::bearer_token());
    /// let by_key = Request::get("/").header("x-api-key", "abc").body(())?;
    /// let by_token = Request::get("/").header("authorization", "Bearer abc").body(())?;
    /// let keys = [by_key, by_token].map(|it| credential.extract(&RequestHead::of(&it), None));
    /// assert!(keys[0].is_some() && keys[1].is_some());
    /// assert_ne!(keys[0], keys[1]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(Source::Either(Arc::new((self.0, other.0))))
    }

    /// The key of a request from `client`, or `None` if a part of it is missing.
    pub fn extract(
        &self,
        head: &RequestHead<'_>,
        client: Option<&AddressKey>,
    ) -> Option<RequestKey> {
        self.extract_with(head, || client.copied())
    }

    /// The same, for a client whose address is looked up only if it is a part of the key.
    pub(super) fn extract_with(
        &self,
        head: &RequestHead<'_>,
        client: impl Fn() -> Option<AddressKey>,
    ) -> Option<RequestKey> {
        let mut digest = Digest::default();
        self.0.write(head, &client, &mut digest)?;
        Some(digest.finish(Origin::Request))
    }
}

impl fmt::Debug for KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyExtractor").finish_non_exhaustive()
    }
}
