use std::borrow::Cow;

use super::{Action, AuthError, Role};

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
    pub(crate) const fn anonymous() -> Self {
        Self { name: Cow::Borrowed("anonymous"), role: Some(Role::Admin) }
    }

    /// Whether this is somebody who may do `action`.
    pub(crate) fn may(&self, action: Action) -> bool {
        self.role >= Some(action.needs())
    }

    /// The same actor, if they may do `action`.
    pub(crate) fn permitted(self, action: Action) -> Result<Self, AuthError> {
        if self.may(action) {
            Ok(self)
        } else {
            Err(AuthError::PermissionDenied { needs: action.needs() })
        }
    }
}
