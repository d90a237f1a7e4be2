//! The policy in force, and decisions under it.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use headgate::Decision;
use http::{Extensions, Request};

use super::{
    GuardBuilder, GuardLayer, InFlightLayer, Policy, PolicyError, Routes, UnknownPeers,
    peer::FindPeer,
    rules::{Open, Rule, Rules},
    unknown_peer::Complaint,
};
use crate::{
    Denied, GuardError, Reason, Subject, Surface, TrustedProxies,
    backend::UNKNOWN_WAIT,
    judge::{Judge, Refusal, Ruling},
};

/// Protects a service: hands out its middleware, decides, and takes another policy at any time.
///
/// Cloning is cheap, and the clones are one guard.
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
pub struct Guard(pub(super) Arc<Live>);

/// What all middleware of one guard shares.
pub(crate) struct Live {
    pub(super) judge: Judge,
    pub(super) proxies: TrustedProxies,
    pub(super) peer: FindPeer,
    pub(super) unknown_peers: UnknownPeers,
    pub(super) complaint: Complaint,
    pub(super) routes: Routes,
    pub(super) tell_admitted: bool,
    pub(super) rules: ArcSwap<Rules>,
    /// Grows when the rules were replaced.
    pub(super) generation: AtomicU64,
    pub(super) open: Mutex<Open>,
}

/// Who asks, where nobody knows where the connection comes from.
pub(super) const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

// === impl Guard ===

impl Guard {
    /// Makes a guard with `policy` for the classes that `routes` lead to.
    pub fn builder(policy: Policy, routes: Routes) -> GuardBuilder {
        GuardBuilder::new(policy, routes)
    }

    /// The first stage: limits by address, before anything is parsed or looked up.
    pub fn layer(&self) -> GuardLayer {
        GuardLayer::before_auth(self)
    }

    /// The second stage: limits by subject and by address, all or nothing. It stands within the
    /// middleware that authenticates; `subject` finds what that one has left in the extensions.
    pub fn layer_after_auth<F>(&self, subject: F) -> GuardLayer
    where
        F: for<'a> Fn(&'a Extensions) -> Option<&'a str> + Send + Sync + 'static,
    {
        GuardLayer::after_auth(self, Arc::new(subject))
    }

    /// Limits how many requests of an address are open at once, until their answers have ended.
    pub fn in_flight_layer(&self) -> InFlightLayer {
        InFlightLayer::new(self)
    }

    /// The policy in force.
    pub fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.0.rules.load().policy)
    }

    /// Puts another policy in force. What was counted stays counted, as long as the algorithm and
    /// the window of a limit stay.
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
    /// If it lacks a class that the present one has. Then the present one stays.
    pub fn replace(&self, policy: Policy) -> Result<(), PolicyError> {
        let live = &*self.0;
        let mut open = live.open.lock().unwrap_or_else(PoisonError::into_inner);
        let present = live.rules.load();
        let missing = |name: &str| policy.classes().iter().all(|class| class.name() != name);
        let names = present.policy.classes().iter().map(super::Class::name);
        if let Some(name) = names.into_iter().find(|name| missing(name)) {
            return Err(PolicyError::UnknownClass(name.into()));
        }
        let rules = Rules::compile(policy, &live.routes, live.judge.backend(), &mut open)?;
        live.rules.store(Arc::new(rules));
        live.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Where `request` comes from, by the connection and by what trusted proxies say.
    pub fn client<B>(&self, request: &Request<B>) -> Option<IpAddr> {
        self.0.client(request)
    }

    /// The first stage for those who have no request: takes one of `class` for `address`.
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
    /// If a limit denies, or if the policy has no such class.
    pub async fn check(
        &self,
        class: &str,
        address: IpAddr,
    ) -> Result<Option<Decision>, GuardError> {
        let rules = self.0.rules.load_full();
        let rule = rules.rule_named(class)?;
        let ruling = self.0.before_auth(&rules, rule, address).await;
        ruling.map_err(|refusal| self.0.denied(Surface::Http, rule, refusal).into())
    }

    /// The second stage for those who have no request: takes one of `class` for `subject` and
    /// for `address`, or nothing.
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
    /// If a limit denies, or if the policy has no such class.
    pub async fn check_subject(
        &self,
        class: &str,
        address: IpAddr,
        subject: &Subject,
    ) -> Result<Option<Decision>, GuardError> {
        let rules = self.0.rules.load_full();
        let rule = rules.rule_named(class)?;
        let ruling = self.0.after_auth(&rules, rule, address, Some(subject.as_str())).await;
        ruling.map_err(|refusal| self.0.denied(Surface::Http, rule, refusal).into())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("policy", &self.policy()).finish_non_exhaustive()
    }
}

// === impl Live ===

impl Live {
    #[inline]
    pub(super) fn client<B>(&self, request: &Request<B>) -> Option<IpAddr> {
        let peer = self.peer.find(request.extensions())?;
        Some(self.proxies.client(peer, request.headers()))
    }

    /// The client whose allowance `request` takes from; `None` if it is to be refused because nobody
    /// knows where it comes from.
    #[inline]
    pub(super) fn counted_client<B>(&self, request: &Request<B>) -> Option<IpAddr> {
        self.client(request).or_else(|| self.unknown_client())
    }

    #[cold]
    fn unknown_client(&self) -> Option<IpAddr> {
        if self.unknown_peers == UnknownPeers::Refuse {
            return None;
        }
        self.judge.backend().unidentified();
        Some(NOWHERE)
    }

    /// Refuses a request that comes from nobody knows where, and says so in the log.
    #[cold]
    pub(super) fn refuse_unknown_peer(&self) -> Refusal {
        self.judge.backend().unidentified();
        self.complaint.write();
        Refusal::new(Reason::UnknownPeer, UNKNOWN_WAIT)
    }

    /// The first stage, if it takes no waiting.
    pub(super) fn before_auth_now(
        &self,
        rules: &Rules,
        rule: &Rule,
        address: IpAddr,
    ) -> Option<Ruling> {
        let Some(counted) = &rule.by_address else {
            return Some(Ok(None));
        };
        self.judge.decide_now_of_address(&counted.ask_of(&address), rules.escalation())
    }

    pub(super) async fn before_auth(&self, rules: &Rules, rule: &Rule, address: IpAddr) -> Ruling {
        let Some(counted) = &rule.by_address else {
            return Ok(None);
        };
        self.judge.decide_of_address(&counted.ask_of(&address), rules.escalation()).await
    }

    /// The second stage, if it takes no waiting.
    pub(super) fn after_auth_now(
        &self,
        rules: &Rules,
        rule: &Rule,
        address: IpAddr,
        subject: Option<&str>,
    ) -> Option<Ruling> {
        let (text, space) = rule.names_after_auth(address);
        match rule.asks_after_auth(&text, &space, subject) {
            Ok(asks) => self.judge.decide_now(&asks, rules.escalation()),
            Err(refusal) => Some(Err(refusal)),
        }
    }

    pub(super) async fn after_auth(
        &self,
        rules: &Rules,
        rule: &Rule,
        address: IpAddr,
        subject: Option<&str>,
    ) -> Ruling {
        let (text, space) = rule.names_after_auth(address);
        let asks = rule.asks_after_auth(&text, &space, subject)?;
        self.judge.decide(&asks, rules.escalation()).await
    }

    pub(super) fn denied(&self, surface: Surface, rule: &Rule, refusal: Refusal) -> Denied {
        self.judge.backend().rejected(rule.name(), refusal.at(surface))
    }
}
