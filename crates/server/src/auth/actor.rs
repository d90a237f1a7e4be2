use std::borrow::Cow;

use super::Role;

/// Who asks, as the audit log names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    /// A person's or a program's name.
    pub(crate) name: Cow<'static, str>,
    /// The highest role; nobody asked for one where none is needed.
    pub(crate) role: Option<Role>,
}

impl Actor {
    /// Somebody who was not asked for a name.
    pub(super) const fn anonymous(role: Option<Role>) -> Self {
        Self { name: Cow::Borrowed("anonymous"), role }
    }
}
