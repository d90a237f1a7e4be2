//! A policy compiled for deciding: key prefixes are written, routes are resolved.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    net::IpAddr,
    sync::Arc,
};

use headgate::{Key, KeySpace};
use http::Request;

use super::{Class, Policy, PolicyError, Routes, in_flight::Places, routes::CompiledRoutes};
use crate::{
    AddressKey, Allowance, Backend, Escalation, GuardError, InFlight, InFlightLimits, Ipv6Prefix,
    Reason,
    backend::UNKNOWN_WAIT,
    decider::{AddressCheck, LimitCheck, LimitChecks, Rejection},
    name::Name,
};

/// A policy and its routes. Immutable: another policy is compiled anew.
pub(crate) struct CompiledPolicy {
    pub(super) source: Arc<Policy>,
    classes: Box<[CompiledClass]>,
    routes: CompiledRoutes,
}

/// The limits of one class that are in force.
pub(crate) struct CompiledClass {
    name: Name,
    pub(super) by_address: Option<CountedAllowance>,
    pub(super) by_subject: Option<CountedAllowance>,
    pub(super) by_address_after_auth: Option<CountedAllowance>,
    pub(super) by_key: Option<CountedAllowance>,
    pub(super) in_flight: Option<InFlightClass>,
    pub(super) shared_in_flight: Option<Arc<Places>>,
}

/// An allowance, and the prefix of the keys that it is counted under.
#[derive(Clone)]
pub(crate) struct CountedAllowance {
    prefix: Box<str>,
    /// Hash of the prefix, for stores that take numbers instead of texts.
    space: u64,
    ipv6: Ipv6Prefix,
    allowance: Allowance,
}

pub(crate) struct InFlightClass {
    pub(super) counts: Arc<InFlight>,
    pub(super) limits: InFlightLimits,
}

/// The limits that a decision was made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consulted {
    Address,
    SubjectAndAddress,
    AddressAfterAuth,
    Key,
}

/// Requests in flight in each class. Outlives policies.
pub(crate) type InFlightCounts = BTreeMap<Name, Arc<InFlight>>;

// === impl CompiledPolicy ===

impl CompiledPolicy {
    pub(super) fn compile(
        policy: Policy,
        routes: &Routes,
        backend: &Backend,
        in_flight: &mut InFlightCounts,
    ) -> Result<Self, PolicyError> {
        let routes = routes.compile(|name| index(policy.classes(), name))?;
        let compile =
            |class: &Class| CompiledClass::compile(class, policy.limits(class), backend, in_flight);
        let classes = policy.classes().iter().map(compile).collect();
        Ok(Self { source: Arc::new(policy), classes, routes })
    }

    /// The class of `request`, and its index.
    #[inline]
    pub(super) fn class_of<B>(&self, request: &Request<B>) -> Option<(usize, &CompiledClass)> {
        let index = self.routes.class(request, |name| index(self.source.classes(), name))?;
        Some((index, &self.classes[index]))
    }

    /// The class of every request, if it is the same for all.
    pub(super) fn only_class(&self) -> Option<&CompiledClass> {
        self.routes.only_class().map(|index| self.class(index))
    }

    /// The class with this index.
    pub(super) fn class(&self, index: usize) -> &CompiledClass {
        &self.classes[index]
    }

    /// The class of this name.
    pub(super) fn class_named(&self, name: &str) -> Result<&CompiledClass, GuardError> {
        let unknown = || GuardError::UnknownClass(name.chars().take(64).collect());
        index(self.source.classes(), name).map(|index| self.class(index)).ok_or_else(unknown)
    }

    pub(super) fn escalation(&self) -> Option<&Escalation> {
        self.source.escalation.as_ref()
    }
}

fn index(classes: &[Class], name: &str) -> Option<usize> {
    classes.iter().position(|class| class.name() == name)
}

// === impl CompiledClass ===

impl CompiledClass {
    fn compile(
        class: &Class,
        limited: bool,
        backend: &Backend,
        in_flight: &mut InFlightCounts,
    ) -> Self {
        let counted = |allowance: &Option<Allowance>, tag| {
            let allowance = allowance.clone().filter(|_| limited)?;
            Some(CountedAllowance::new(
                backend.prefix(class.name(), tag),
                backend.ipv6(),
                if class.lease.is_off() { allowance } else { allowance.leased(class.lease) },
            ))
        };
        let in_flight = class.in_flight.filter(|_| limited).map(|limits| {
            let counts = in_flight.entry(class.name.clone()).or_insert_with(InFlight::new);
            InFlightClass { counts: Arc::clone(counts), limits }
        });
        let shared_in_flight = class.shared_in_flight.as_ref().filter(|_| limited);
        Self {
            name: class.name.clone(),
            by_address: counted(&class.by_address, "ip"),
            by_subject: counted(&class.by_subject, "sub"),
            by_address_after_auth: counted(&class.by_address_after_auth, "aip"),
            by_key: counted(&class.by_key, "key"),
            in_flight,
            shared_in_flight: shared_in_flight
                .map(|limits| Arc::new(Places::new(class.name.clone(), limits.clone(), backend))),
        }
    }

    pub(super) const fn name(&self) -> &str {
        self.name.as_str()
    }

    /// The key of the address after authentication, and the space of the subject's key.
    pub(super) fn keys_after_auth(&self, address: IpAddr) -> (AddressKey, KeySpace<'_>) {
        let by_address = self.by_address_after_auth.as_ref();
        let ipv6 = by_address.map_or_else(Ipv6Prefix::default, |counted| counted.ipv6);
        let prefix = by_address.map_or("", CountedAllowance::prefix);
        let by_subject = self.by_subject.as_ref().map_or("", CountedAllowance::prefix);
        (AddressKey::grouped(prefix, address, ipv6), KeySpace::new(by_subject, ""))
    }

    /// The limits after authentication: by subject, if it is known, and by address.
    pub(super) fn checks_after_auth<'a>(
        &'a self,
        text: &'a AddressKey,
        space: &'a KeySpace<'a>,
        subject: Option<&'a str>,
    ) -> Result<LimitChecks<'a>, Rejection> {
        let mut checks = LimitChecks::new();
        if let (Some(counted), Some(subject)) = (&self.by_subject, subject) {
            // A subject that is not a valid key cannot be counted, so it is denied.
            let key = Key::new(subject)
                .map_err(|_| Rejection::new(Reason::Subject, UNKNOWN_WAIT))?
                .within(space);
            checks.push(counted.check(key, Reason::Subject));
        }
        if let (Some(counted), Ok(key)) = (&self.by_address_after_auth, Key::new(text)) {
            checks.push(counted.check(key, Reason::Address));
        }
        Ok(checks)
    }

    /// The allowance at `index` of the limits that were consulted.
    pub(super) fn allowance(&self, consulted: Consulted, index: usize) -> Option<&Allowance> {
        let by_subject =
            self.by_subject.as_ref().filter(|_| consulted == Consulted::SubjectAndAddress);
        let counted = match consulted {
            Consulted::Address => self.by_address.as_ref(),
            Consulted::Key => self.by_key.as_ref(),
            _ if index == 0 && by_subject.is_some() => by_subject,
            _ => self.by_address_after_auth.as_ref(),
        };
        counted.map(CountedAllowance::allowance)
    }
}

// === impl CountedAllowance ===

impl CountedAllowance {
    fn new(prefix: Box<str>, ipv6: Ipv6Prefix, allowance: Allowance) -> Self {
        // Not seeded, so that counters survive a replaced policy.
        let space = BuildHasherDefault::<DefaultHasher>::default().hash_one(&prefix);
        Self { prefix, space, ipv6, allowance }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    #[inline]
    pub(super) const fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    #[inline]
    pub(super) fn check_address<'a>(&'a self, address: &'a IpAddr) -> AddressCheck<'a> {
        let Self { prefix, space, ipv6, allowance } = self;
        AddressCheck { prefix, space: *space, address, ipv6: *ipv6, allowance }
    }

    pub(super) fn check<'a>(&'a self, key: Key<'a>, reason: Reason) -> LimitCheck<'a> {
        LimitCheck { key, allowance: &self.allowance, reason }
    }
}
