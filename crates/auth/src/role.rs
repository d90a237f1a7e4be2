use std::fmt;

use headgate_config::{Print, Printed};
use serde::Deserialize;

/// A set of permissions. A higher role includes the lower ones.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads.
    #[serde(rename = "sys_auditor")]
    Auditor,
    /// Reads and changes.
    #[serde(rename = "sys_operator")]
    Operator,
    /// Reads, changes and deletes.
    #[serde(rename = "sys_admin")]
    Admin,
}

impl Role {
    const ALL: [Self; 3] = [Self::Auditor, Self::Operator, Self::Admin];

    /// Returns the name in tokens and configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auditor => "sys_auditor",
            Self::Operator => "sys_operator",
            Self::Admin => "sys_admin",
        }
    }

    /// Returns the highest role among `names`. Unknown names grant nothing.
    pub(crate) fn highest<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let role = |name| Self::ALL.into_iter().find(|role| role.name() == name);
        names.into_iter().filter_map(role).max()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Print for Role {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}
