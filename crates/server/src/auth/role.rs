use std::fmt;

use serde::Deserialize;

/// What somebody may do. A higher role includes the lower ones.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Looks.
    #[serde(rename = "sys_auditor")]
    Auditor,
    /// Looks and changes.
    #[serde(rename = "sys_operator")]
    Operator,
    /// Looks, changes and deletes.
    #[serde(rename = "sys_admin")]
    Admin,
}

impl Role {
    const ALL: [Self; 3] = [Self::Auditor, Self::Operator, Self::Admin];

    /// The name in tokens and configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auditor => "sys_auditor",
            Self::Operator => "sys_operator",
            Self::Admin => "sys_admin",
        }
    }

    /// The highest role among these names. Names that are nobody's grant nothing.
    pub(super) fn highest<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let role = |name| Self::ALL.into_iter().find(|role| role.name() == name);
        names.into_iter().filter_map(role).max()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
