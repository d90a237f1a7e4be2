use std::borrow::Cow;

use super::Role;

/// Who asks, as the audit log names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    /// A person's or a program's name.
    pub(crate) name: Cow<'static, str>,
    /// The highest role, if there is any.
    pub(crate) role: Option<Role>,
}

impl Actor {
    /// Somebody who was not asked for a name, where everybody may do everything.
    pub(super) const fn anonymous() -> Self {
        Self { name: Cow::Borrowed("anonymous"), role: Some(Role::Admin) }
    }
}
