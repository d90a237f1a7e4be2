//! What is allowed of one class of requests.

use crate::{
    Allowance, InFlightLimits,
    name::{Name, NameError},
};

/// A class of requests, and what is allowed of it. What has no allowance is not limited.
///
/// ```
/// use headgate_guard::{Allowance, Class};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Before anybody is known: by address. After: by who they are, and by address.
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
    pub(super) in_flight: Option<InFlightLimits>,
}

impl Class {
    /// A class that is not limited yet. Its name stands in keys, headers and metrics: 1 to 16
    /// bytes of `a-z`, `0-9`, `-` and `_`.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Ok(Self {
            name: Name::new(name)?,
            always_on: false,
            by_address: None,
            by_subject: None,
            by_address_after_auth: None,
            in_flight: None,
        })
    }

    /// The first stage: what one address may ask for, before anything is known of it.
    #[must_use]
    pub fn by_address(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_address: Some(allowance.into()), ..self }
    }

    /// The second stage: what one subject may ask for, wherever it is.
    #[must_use]
    pub fn by_subject(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_subject: Some(allowance.into()), ..self }
    }

    /// The second stage: what all subjects of one address may ask for. Subject and address are
    /// decided together, all or nothing.
    #[must_use]
    pub fn by_address_after_auth(self, allowance: impl Into<Allowance>) -> Self {
        Self { by_address_after_auth: Some(allowance.into()), ..self }
    }

    /// How many requests are open at once, by one address and by all: see
    /// [`Guard::in_flight_layer`](crate::Guard::in_flight_layer).
    #[must_use]
    pub fn in_flight(self, limits: InFlightLimits) -> Self {
        Self { in_flight: Some(limits), ..self }
    }

    /// Limits this class also while the policy is not enabled.
    #[must_use]
    pub fn always_on(self) -> Self {
        Self { always_on: true, ..self }
    }

    /// The name.
    pub const fn name(&self) -> &str {
        self.name.as_str()
    }
}
