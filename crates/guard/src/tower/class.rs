//! Limits of one class of requests.

use headgate::LeasePolicy;

use crate::{
    Allowance, InFlightLimits, SharedInFlight,
    name::{Name, NameError},
};

/// A class of requests and its limits. A class without an allowance is not limited.
///
/// ```
/// use headgate_guard::{Allowance, Class};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // By address before authentication; by subject and by address after it.
/// let protected = Class::new("protected")?
///     .by_address(Allowance::per_minute(300)?)
///     .by_subject(Allowance::per_minute(120)?)
///     .by_address_after_auth(Allowance::per_minute(240)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    pub(super) name: Name,
    pub(super) always_on: bool,
    pub(super) by_address: Option<Allowance>,
    pub(super) by_subject: Option<Allowance>,
    pub(super) by_address_after_auth: Option<Allowance>,
    pub(super) by_key: Option<Allowance>,
    pub(super) in_flight: Option<InFlightLimits>,
    pub(super) shared_in_flight: Option<SharedInFlight>,
    pub(super) lease: LeasePolicy,
}

impl Class {
    /// A class without limits. Its name is used in store keys, headers and metrics: 1 to 16 bytes
    /// of `a-z`, `0-9`, `-` and `_`.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Ok(Self {
            name: Name::new(name)?,
            always_on: false,
            by_address: None,
            by_subject: None,
            by_address_after_auth: None,
            by_key: None,
            in_flight: None,
            shared_in_flight: None,
            lease: LeasePolicy::OFF,
        })
    }

    /// Limits each address, before authentication: see [`Guard::layer`](crate::Guard::layer).
    #[must_use]
    pub fn by_address(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_address: Some(allowance.into()), ..self }
    }

    /// Limits each subject over all of its addresses: see
    /// [`Guard::layer_after_auth`](crate::Guard::layer_after_auth).
    #[must_use]
    pub fn by_subject(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_subject: Some(allowance.into()), ..self }
    }

    /// Limits all subjects of one address together, after authentication. A request counts against
    /// subject and address or against neither.
    #[must_use]
    pub fn by_address_after_auth(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_address_after_auth: Some(allowance.into()), ..self }
    }

    /// Limits each key that a [`KeyExtractor`](crate::KeyExtractor) finds: see
    /// [`Guard::layer_by_key`](crate::Guard::layer_by_key).
    #[must_use]
    pub fn by_key(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_key: Some(allowance.into()), ..self }
    }

    /// Limits requests in flight in this process, of one address and of all addresses together: see
    /// [`Guard::in_flight_layer`](crate::Guard::in_flight_layer).
    #[must_use]
    pub fn in_flight(self, limits: InFlightLimits) -> Self {
        Self { in_flight: Some(limits), ..self }
    }

    /// Limits requests in flight over all instances that share the store of the
    /// [`Backend`](crate::Backend), of one address, of all addresses together, or both: see
    /// [`Guard::in_flight_layer`](crate::Guard::in_flight_layer). A class may also have a limit
    /// [in each process](Self::in_flight), which is checked first.
    #[must_use]
    pub fn shared_in_flight(self, limits: SharedInFlight) -> Self {
        Self { shared_in_flight: Some(limits), ..self }
    }

    /// Takes a part of each of its limits in advance from a shared store, and hands it out without
    /// asking it; [`LeasePolicy::OFF`] by default.
    ///
    /// The store of the [`Backend`](crate::Backend) must be a `LeasedStore` of
    /// `headgate-store-leased`, around the shared one. In memory it has no effect.
    #[must_use]
    pub fn lease(self, policy: LeasePolicy) -> Self {
        Self { lease: policy, ..self }
    }

    /// Keeps this class limited while the policy is [disabled](crate::Policy::enabled).
    #[must_use]
    pub fn always_on(self) -> Self {
        Self { always_on: true, ..self }
    }

    /// The name.
    pub const fn name(&self) -> &str {
        self.name.as_str()
    }
}
