//! A policy that is compiled for deciding.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    net::IpAddr,
    sync::Arc,
};

use headgate::{Key, Space};
use http::Request;

use super::{Class, Policy, PolicyError, Routes, routes::CompiledRoutes};
use crate::{
    AddressKey, Allowance, Backend, Escalation, GuardError, InFlight, InFlightLimits, Ipv6Prefix,
    Reason,
    backend::UNKNOWN_WAIT,
    judge::{Ask, AskOfAddress, Asks, Refusal},
    name::Name,
};

/// A policy and its routes. Immutable: another policy makes others.
pub(crate) struct Rules {
    pub(super) policy: Arc<Policy>,
    classes: Box<[Rule]>,
    routes: CompiledRoutes,
}

/// What holds for one class.
pub(crate) struct Rule {
    name: Name,
    pub(super) by_address: Option<Counted>,
    pub(super) by_subject: Option<Counted>,
    pub(super) by_address_after_auth: Option<Counted>,
    pub(super) in_flight: Option<InFlightRule>,
}

/// An allowance, and what stands before the names of those who have it.
pub(crate) struct Counted {
    prefix: Box<str>,
    /// Stands for the prefix, where a number costs less than a text.
    space: u64,
    ipv6: Ipv6Prefix,
    allowance: Allowance,
}

pub(crate) struct InFlightRule {
    pub(super) open: Arc<InFlight>,
    pub(super) limits: InFlightLimits,
}

/// Which limits were asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    BeforeAuth,
    OfSubject,
    OfNobody,
}

/// What is open in each class. It outlives policies.
pub(crate) type Open = BTreeMap<Name, Arc<InFlight>>;

// === impl Rules ===

impl Rules {
    pub(super) fn compile(
        policy: Policy,
        routes: &Routes,
        backend: &Backend,
        open: &mut Open,
    ) -> Result<Self, PolicyError> {
        let routes = routes.compile(|name| place(policy.classes(), name))?;
        let rule = |class: &Class| Rule::compile(class, policy.limits(class), backend, open);
        let classes = policy.classes().iter().map(rule).collect();
        Ok(Self { policy: Arc::new(policy), classes, routes })
    }

    /// The rule for `request`.
    #[inline]
    pub(super) fn rule_for<B>(&self, request: &Request<B>) -> Option<(usize, &Rule)> {
        let place = self.routes.class(request, |name| place(self.policy.classes(), name))?;
        Some((place, &self.classes[place]))
    }

    /// The rule for a class, by its place.
    pub(super) fn rule(&self, place: usize) -> &Rule {
        &self.classes[place]
    }

    /// The rule for a class, by its name.
    pub(super) fn rule_named(&self, class: &str) -> Result<&Rule, GuardError> {
        let place = place(self.policy.classes(), class);
        let unknown = || GuardError::UnknownClass(class.chars().take(64).collect());
        place.map(|place| self.rule(place)).ok_or_else(unknown)
    }

    pub(super) fn escalation(&self) -> Option<&Escalation> {
        self.policy.escalation.as_ref()
    }
}

fn place(classes: &[Class], name: &str) -> Option<usize> {
    classes.iter().position(|class| class.name() == name)
}

// === impl Rule ===

impl Rule {
    fn compile(class: &Class, limited: bool, backend: &Backend, open: &mut Open) -> Self {
        let counted = |allowance: &Option<Allowance>, tag| {
            let allowance = allowance.clone().filter(|_| limited)?;
            Some(Counted::new(backend.prefix(class.name(), tag), backend.ipv6(), allowance))
        };
        let in_flight = class.in_flight.filter(|_| limited).map(|limits| {
            let open = open.entry(class.name.clone()).or_insert_with(InFlight::new);
            InFlightRule { open: Arc::clone(open), limits }
        });
        Self {
            name: class.name.clone(),
            by_address: counted(&class.by_address, "ip"),
            by_subject: counted(&class.by_subject, "sub"),
            by_address_after_auth: counted(&class.by_address_after_auth, "aip"),
            in_flight,
        }
    }

    pub(super) const fn name(&self) -> &str {
        self.name.as_str()
    }

    /// What the address and the subject of the second stage are called.
    pub(super) fn names_after_auth(&self, address: IpAddr) -> (AddressKey, Space<'_>) {
        let by_address = self.by_address_after_auth.as_ref();
        let ipv6 = by_address.map_or_else(Ipv6Prefix::default, |counted| counted.ipv6);
        let text = AddressKey::grouped(by_address.map_or("", Counted::prefix), address, ipv6);
        (text, Space::new(self.by_subject.as_ref().map_or("", Counted::prefix), ""))
    }

    /// What is asked in the second stage: by subject, if that is known, and by address.
    pub(super) fn asks_after_auth<'a>(
        &'a self,
        text: &'a AddressKey,
        space: &'a Space<'a>,
        subject: Option<&'a str>,
    ) -> Result<Asks<'a>, Refusal> {
        let mut asks = Asks::new();
        if let (Some(counted), Some(subject)) = (&self.by_subject, subject) {
            // Who cannot be counted cannot be let in.
            let key = Key::new(subject)
                .map_err(|_| Refusal::new(Reason::Subject, UNKNOWN_WAIT))?
                .within(space);
            asks.push(counted.ask(key, Reason::Subject));
        }
        if let (Some(counted), Ok(key)) = (&self.by_address_after_auth, Key::new(text)) {
            asks.push(counted.ask(key, Reason::Address));
        }
        Ok(asks)
    }

    /// The allowance that stands at `place` of what was asked in the first stage, or in
    /// the second about a subject that was known or not.
    pub(super) fn allowance(&self, stage: Asked, place: usize) -> Option<&Allowance> {
        let by_subject = self.by_subject.as_ref().filter(|_| stage == Asked::OfSubject);
        let counted = match stage {
            Asked::BeforeAuth => self.by_address.as_ref(),
            _ if place == 0 && by_subject.is_some() => by_subject,
            _ => self.by_address_after_auth.as_ref(),
        };
        counted.map(Counted::allowance)
    }
}

// === impl Counted ===

impl Counted {
    fn new(prefix: Box<str>, ipv6: Ipv6Prefix, allowance: Allowance) -> Self {
        // The same in every policy: what was counted stays counted. That nobody else has it is
        // all that is asked of it.
        let space = BuildHasherDefault::<DefaultHasher>::default().hash_one(&prefix);
        Self { prefix, space, ipv6, allowance }
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }

    #[inline]
    pub(super) const fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    #[inline]
    pub(super) fn ask_of<'a>(&'a self, address: &'a IpAddr) -> AskOfAddress<'a> {
        let Self { prefix, space, ipv6, allowance } = self;
        AskOfAddress { prefix, space: *space, address, ipv6: *ipv6, allowance }
    }

    fn ask<'a>(&'a self, key: Key<'a>, reason: Reason) -> Ask<'a> {
        Ask { key, allowance: &self.allowance, reason }
    }
}
