use std::borrow::Cow;

use crate::{Action, AuthError, Role};

/// A caller, as the audit log names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// Name of the person or program.
    pub name: Cow<'static, str>,
    /// Highest role, if there is one.
    pub role: Option<Role>,
    /// How they were authenticated: the same name may have several credentials.
    pub method: AuthMethod,
}

/// A method of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// Authentication is off.
    Off,
    /// A static token.
    Token,
    /// A client certificate.
    Certificate,
    /// A JWT of the issuer.
    Issuer,
}

impl Actor {
    /// Returns the actor of every request while authentication is off.
    pub const fn anonymous() -> Self {
        Self { name: Cow::Borrowed("anonymous"), role: Some(Role::Admin), method: AuthMethod::Off }
    }

    /// Returns `true` if the role of this actor allows `action`.
    pub fn may(&self, action: Action) -> bool {
        self.role >= Some(action.needs())
    }

    /// Returns the actor, if its role allows `action`.
    ///
    /// # Errors
    ///
    /// Names the role that is missing.
    pub fn permitted(self, action: Action) -> Result<Self, AuthError> {
        if self.may(action) {
            Ok(self)
        } else {
            Err(AuthError::PermissionDenied { needs: action.needs() })
        }
    }
}
