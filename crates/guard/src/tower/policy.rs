//! What is allowed of all classes.

use thiserror::Error;

use super::Class;
use crate::{Escalation, name::NameError};

/// What is allowed of all classes, as an operator may replace it while the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub(super) enabled: bool,
    pub(super) classes: Vec<Class>,
    pub(super) escalation: Option<Escalation>,
}

/// Why classes and routes make no sense together.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PolicyError {
    /// A class cannot be called that.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Which one would be meant?
    #[error("class {0:?} stands twice in the policy")]
    Duplicate(String),
    /// Its requests would not be limited by anything.
    #[error("routes lead to class {0:?}, which the policy does not have")]
    UnknownClass(String),
    /// Paths begin so.
    #[error("route {0:?} must begin with '/'")]
    Route(String),
}

// === impl Policy ===

impl Policy {
    /// The policy of these classes.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate_guard::{Allowance, Class, Escalation, Policy};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Whoever is denied waits 1 s, then 2 s, then 4 s, up to a minute.
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

    /// Limits, or does not: only classes that are [always on](Class::always_on) then are.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        Self { enabled, ..self }
    }

    /// Lets those wait longer who are denied again and again.
    #[must_use]
    pub fn escalation(self, escalation: Escalation) -> Self {
        Self { escalation: Some(escalation), ..self }
    }

    /// Whether anything but what is always on is limited.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The classes.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Whether the limits of `class` hold.
    pub(super) const fn limits(&self, class: &Class) -> bool {
        self.enabled || class.always_on
    }
}
