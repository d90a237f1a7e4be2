//! The limits of all classes.

use thiserror::Error;

use super::Class;
use crate::{Escalation, name::NameError};

/// The limits of all classes. It can be replaced while the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub(super) enabled: bool,
    pub(super) classes: Vec<Class>,
    pub(super) escalation: Option<Escalation>,
}

/// Invalid policy or routes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// Invalid class name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Two classes have the same name.
    #[error("duplicate class {0:?} in the policy")]
    Duplicate(String),
    /// A route names a class that the policy does not have.
    #[error("unknown class {0:?}: the routes name it, but the policy does not have it")]
    UnknownClass(String),
    /// A route is not a path.
    #[error("invalid route {0:?}: it must begin with '/'")]
    Route(String),
}

// === impl Policy ===

impl Policy {
    /// A policy of these classes.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate_guard::{Allowance, Class, Escalation, Policy};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Each denial costs 1 s, then 2 s, then 4 s, up to a minute.
    /// let [first, max, forgiven_after] = [1, 60, 600].map(Duration::from_secs);
    /// let escalation = Escalation::new(first, max, forgiven_after)?;
    /// assert_eq!(escalation.penalty(3), Duration::from_secs(4));
    ///
    /// let public = Class::new("public")?.by_address(Allowance::per_minute(120)?);
    /// let policy = Policy::new([public.clone()])?.escalation(escalation);
    /// assert!(policy.is_enabled());
    /// assert!(Policy::new([public.clone(), public]).is_err(), "names must differ");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(classes: impl IntoIterator<Item = Class>) -> Result<Self, PolicyError> {
        let classes = Vec::from_iter(classes);
        for (i, class) in classes.iter().enumerate() {
            if classes[..i].iter().any(|earlier| earlier.name == class.name) {
                return Err(PolicyError::Duplicate(class.name().into()));
            }
        }
        Ok(Self { enabled: true, classes, escalation: None })
    }

    /// Enables or disables the limits. While disabled, only classes that are [always
    /// on](Class::always_on) are limited.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        Self { enabled, ..self }
    }

    /// Lengthens the wait of clients that are denied repeatedly.
    #[must_use]
    pub fn escalation(self, escalation: Escalation) -> Self {
        Self { escalation: Some(escalation), ..self }
    }

    /// Returns `true` if limits are in force for all classes.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Returns `true` if the limits of `class` are in force.
    pub(super) const fn limits(&self, class: &Class) -> bool {
        self.enabled || class.always_on
    }
}
