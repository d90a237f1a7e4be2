use headgate::FailMode;
use headgate_config::{Print, Printed};
use serde::Deserialize;

/// The name of a failure mode in a configuration: the mode decides while the store is unavailable.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FailModeName {
    /// This process decides alone, with the whole limit.
    #[default]
    Capped,
    /// Everything is admitted.
    Open,
    /// Everything is denied.
    Closed,
    /// This process decides alone, with its share of the limit.
    Local,
}

impl FailModeName {
    /// Returns the failure mode.
    pub const fn get(self) -> FailMode {
        match self {
            Self::Capped => FailMode::Capped,
            Self::Open => FailMode::Open,
            Self::Closed => FailMode::Closed,
            Self::Local => FailMode::Local,
        }
    }
}

impl Print for FailModeName {
    fn print(&self) -> Printed {
        Printed::scalar(self.get().name())
    }
}
