//! The policy in force, and decisions under it.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use headgate::Decision;
use http::{Extensions, Request};

use super::{
    Class, GuardBuilder, GuardLayer, InFlightLayer, KeyExtractor, MissingKey, Policy, PolicyError,
    Routes, compiled::CompiledPolicy, shared::Shared,
};
use crate::{GuardError, Subject, Surface};

/// Limits the requests of a service under a [`Policy`], which can be replaced at any time.
///
/// Cloning is cheap; clones share the policy and the counters.
///
/// ```
/// use axum::{Router, routing::get};
/// use headgate_guard::{Allowance, Class, Guard, InFlightLimits, Policy, Routes};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// /// The user that the authentication middleware found.
/// #[derive(Clone)]
/// struct User(String);
///
/// let search = Class::new("search")?
///     .by_address(Allowance::per_minute(300)?)
///     .by_subject(Allowance::per_minute(120)?)
///     .in_flight(InFlightLimits::new(8, 1_000));
/// let guard = Guard::builder(Policy::new([search])?, Routes::all("search")).build()?;
///
/// let app: Router = Router::new()
///     .route("/search", get(async || "found"))
///     // By user, within the authentication middleware, which would be the next layer.
///     .layer(guard.layer_after_auth(|known| known.get::<User>().map(|user| user.0.as_str())))
///     .layer(guard.in_flight_layer())
///     // By address. The last layer is the first to see a request.
///     .layer(guard.layer());
/// # drop(app);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Guard(pub(super) Arc<Shared>);

// === impl Guard ===

impl Guard {
    /// Builds a guard with `policy` for the classes that `routes` name.
    pub fn builder(policy: Policy, routes: Routes) -> GuardBuilder {
        GuardBuilder::new(policy, routes)
    }

    /// Middleware that limits requests by address, before anything is parsed or looked up.
    pub fn layer(&self) -> GuardLayer {
        GuardLayer::before_auth(self)
    }

    /// Middleware that limits requests by subject and by address; a request counts against both or
    /// neither. It belongs inside the middleware that authenticates; `subject` returns the value
    /// that it has left in the request's extensions.
    pub fn layer_after_auth<F>(&self, subject: F) -> GuardLayer
    where
        F: for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync + 'static,
    {
        GuardLayer::after_auth(self, Arc::new(subject))
    }

    /// Middleware that limits requests by a key of their own, such as an API key, in each class
    /// with an allowance [by key](Class::by_key). See [`KeyExtractor`] for an example.
    pub fn layer_by_key(&self, extractor: KeyExtractor, missing: MissingKey) -> GuardLayer {
        GuardLayer::by_key(self, extractor, missing)
    }

    /// Middleware that limits how many requests of an address, and of all addresses together, are
    /// in flight at once: in this process ([`Class::in_flight`]) and over all instances
    /// ([`Class::shared_in_flight`]). A request is in flight until its response body has ended.
    ///
    /// Under a shared limit, a request takes a place in the store before its handler runs, and
    /// holds it under a lease that is renewed in the background. A place is released without
    /// delaying the response. While the store is away, the failure mode of the
    /// [`Backend`](crate::Backend) decides, as for rates. If a lease ends although its request is
    /// in flight, because the process or the store was away for too long, another request may take
    /// the place: [`Observer::place_lost`](crate::Observer::place_lost) is called, the request goes
    /// on, and takes a place again when there is one.
    ///
    /// ```
    /// use std::{convert::Infallible, sync::Arc};
    ///
    /// use axum::body::Body;
    /// use headgate_guard::{
    ///     Backend, Class, Guard, PeerAddress, Policy, Routes, SharedInFlight,
    /// };
    /// use headgate_store_memory::MemoryStore;
    /// use http::{Request, Response};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Several processes would share a `RedisStore`, with `Backend::shared`.
    /// let store = Arc::new(MemoryStore::default());
    /// let instance = || -> Result<Guard, Box<dyn std::error::Error>> {
    ///     let limits = SharedInFlight::per_client(1)?.and_in_all(50)?;
    ///     let exports = Class::new("exports")?.shared_in_flight(limits);
    ///     let backend = Backend::in_memory(Arc::clone(&store));
    ///     let policy = Policy::new([exports])?;
    ///     Ok(Guard::builder(policy, Routes::all("exports")).backend(backend).build()?)
    /// };
    /// let (one, other) = (instance()?, instance()?);
    /// let export = service_fn(async |_: Request<Body>| {
    ///     Ok::<_, Infallible>(Response::new(Body::from("all rows")))
    /// });
    /// let request = || {
    ///     let mut request = Request::new(Body::empty());
    ///     request.extensions_mut().insert(PeerAddress(([198, 51, 100, 7], 443).into()));
    ///     request
    /// };
    ///
    /// let first = one.in_flight_layer().layer(export).oneshot(request()).await?;
    /// let second = other.in_flight_layer().layer(export).oneshot(request()).await?;
    /// assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 429));
    ///
    /// // The first response was sent, or its client is gone.
    /// drop(first);
    /// one.release_in_flight().await;
    /// let third = other.in_flight_layer().layer(export).oneshot(request()).await?;
    /// assert_eq!(third.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_flight_layer(&self) -> InFlightLayer {
        InFlightLayer::new(self)
    }

    /// Releases every place that requests hold under [shared limits](Class::shared_in_flight), and
    /// waits for releases that are under way.
    ///
    /// For a shutdown, when the server has stopped accepting requests: other instances then have
    /// the places at once, and not when the leases end. A request that is still in flight goes on
    /// without its place. A call to the store that hangs is given up after a lease; with new
    /// requests arriving, this may wait for them, too.
    pub async fn release_in_flight(&self) {
        self.0.keeper.release_all().await;
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.0.policy.load().source)
    }

    /// Replaces the policy. Counters are kept for every limit whose algorithm and window stay the
    /// same.
    ///
    /// ```
    /// use headgate_guard::{Allowance, Class, Guard, Policy, Routes};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = |count| -> Result<Policy, Box<dyn std::error::Error>> {
    ///     let class = Class::new("public")?.by_address(Allowance::per_minute(count)?);
    ///     Ok(Policy::new([class])?)
    /// };
    /// let guard = Guard::builder(policy(120)?, Routes::all("public")).build()?;
    ///
    /// guard.replace(policy(60)?)?;
    /// assert!(guard.replace(Policy::new([])?).is_err(), "the class \"public\" is missing");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the policy lacks a class that the current one has. The current policy then stays in
    /// force.
    pub fn replace(&self, policy: Policy) -> Result<(), PolicyError> {
        let shared = &*self.0;
        let mut in_flight = shared.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let current = shared.policy.load();
        let is_missing = |name: &str| policy.classes().iter().all(|class| class.name() != name);
        let mut names = current.source.classes().iter().map(Class::name);
        if let Some(name) = names.find(|name| is_missing(name)) {
            return Err(PolicyError::UnknownClass(name.into()));
        }
        let backend = shared.decider.backend();
        let compiled = CompiledPolicy::compile(policy, &shared.routes, backend, &mut in_flight)?;
        shared.policy.store(Arc::new(compiled));
        shared.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The client's address: that of the connection, or the one that a trusted proxy forwarded.
    pub fn client<B>(&self, request: &Request<B>) -> Option<IpAddr> {
        self.0.client(request)
    }

    /// Counts one request of `class` by `address`, as [`layer`](Self::layer) does, where there is
    /// no HTTP request.
    ///
    /// ```
    /// use headgate_guard::{Allowance, Class, Guard, Policy, Routes};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mail = Class::new("mail")?.by_address(Allowance::per_hour(1)?);
    /// let guard = Guard::builder(Policy::new([mail])?, Routes::new()).build()?;
    /// let address = "198.51.100.7".parse()?;
    ///
    /// guard.check("mail", address).await?;
    /// let error = guard.check("mail", address).await.unwrap_err();
    /// assert_eq!(error.denied().map(|denied| denied.retry_after_secs()), Some(3600));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If a limit denies the request, or if the policy has no such class.
    pub async fn check(
        &self,
        class: &str,
        address: IpAddr,
    ) -> Result<Option<Decision>, GuardError> {
        let policy = self.0.policy.load_full();
        let class = policy.class_named(class)?;
        let result = self.0.before_auth(&policy, class, address).await;
        result.map_err(|rejection| self.0.denied(Surface::Http, class, rejection).into())
    }

    /// Counts one request of `class` by `subject` and by `address`, as
    /// [`layer_after_auth`](Self::layer_after_auth) does, where there is no HTTP request.
    ///
    /// ```
    /// use headgate_guard::{Allowance, Class, Guard, Policy, Routes, Subject};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mail = Class::new("mail")?.by_subject(Allowance::per_hour(1)?);
    /// let guard = Guard::builder(Policy::new([mail])?, Routes::new()).build()?;
    /// let user = Subject::new("user:42")?;
    ///
    /// guard.check_subject("mail", "198.51.100.7".parse()?, &user).await?;
    /// // The same user from another address.
    /// let denied = guard.check_subject("mail", "203.0.113.9".parse()?, &user).await;
    /// assert!(denied.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If a limit denies the request, or if the policy has no such class.
    pub async fn check_subject(
        &self,
        class: &str,
        address: IpAddr,
        subject: &Subject,
    ) -> Result<Option<Decision>, GuardError> {
        let policy = self.0.policy.load_full();
        let class = policy.class_named(class)?;
        let result = self.0.after_auth(&policy, class, address, Some(subject.as_str())).await;
        result.map_err(|rejection| self.0.denied(Surface::Http, class, rejection).into())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("policy", &self.policy()).finish_non_exhaustive()
    }
}
