use headgate::LeasePolicy;
use headgate_config::{Print, Printed, quoted};
use serde::Deserialize;

/// A lease in a configuration: a share of the limit and a hold such as `10%/200ms`, or `off`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct LeaseText(LeasePolicy);

impl LeaseText {
    /// Returns the policy.
    pub const fn get(self) -> LeasePolicy {
        self.0
    }
}

impl TryFrom<String> for LeaseText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let invalid = |error| format!("{error}, got {}", quoted(&text));
        text.parse().map(Self).map_err(invalid)
    }
}

impl Print for LeaseText {
    fn print(&self) -> Printed {
        Printed::scalar(self.0.to_string())
    }
}
