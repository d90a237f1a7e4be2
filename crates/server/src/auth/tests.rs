mod issuer;
mod jwt;
mod tokens;

use std::sync::Arc;

use headgate::{Clock, ManualClock, SystemClock};
use headgate_testkit::Issuer;

use super::*;
use crate::config::Config;

/// A server's authentication under a clock that the test moves.
struct Guard {
    auth: Auth,
    clock: Arc<ManualClock>,
}

impl Guard {
    /// With these keys set, such as `("auth.mode", "off")`.
    fn new(keys: &[(&str, &str)], admin: Option<&AdminToken>) -> Self {
        let variables = keys.iter().map(|(key, value)| {
            let name = format!("HEADGATE__{}", key.to_ascii_uppercase().replace('.', "__"));
            (name, (*value).to_owned())
        });
        let config = Config::load(None, variables).unwrap();
        let clock = Arc::new(ManualClock::new(SystemClock::new().now()));
        let shown: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        Self { auth: Auth::new(&config.auth, admin, shown).unwrap(), clock }
    }

    /// Trusts `issuer`.
    fn trusting(issuer: &Issuer) -> Self {
        Self::new(&[("auth.jwks_url", &issuer.url())], None)
    }

    async fn ask(&self, token: &str, action: Action) -> Result<Actor, AuthError> {
        self.auth.authorize(Some(format!("Bearer {token}").as_bytes()), action).await
    }

    /// Asks for something that every role may do.
    async fn read(&self, token: &str) -> Result<Actor, AuthError> {
        self.ask(token, Action::ReadRules).await
    }

    /// Why the token is refused.
    async fn refusal(&self, token: &str) -> Refusal {
        match self.read(token).await {
            Err(AuthError::InvalidToken(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_action_has_its_role() {
    let table = Action::ALL.map(|action| (action, action.needs()));
    let expected = [
        (Action::Explain, Role::Auditor),
        (Action::ReadRules, Role::Auditor),
        (Action::WriteRules, Role::Operator),
        (Action::DeleteRules, Role::Admin),
        (Action::ReadUsage, Role::Auditor),
        (Action::ResetCounters, Role::Operator),
        (Action::ReadAudit, Role::Auditor),
        (Action::ReadEvents, Role::Auditor),
        (Action::ReadQuotas, Role::Auditor),
        (Action::WriteQuotas, Role::Operator),
        (Action::UseQuotas, Role::Operator),
        (Action::DeleteQuotas, Role::Admin),
        (Action::ResetQuotas, Role::Admin),
        (Action::LimitRequests, Role::Auditor),
        (Action::Watch, Role::Auditor),
        (Action::SeeSubjects, Role::Operator),
        (Action::ReadServices, Role::Auditor),
        (Action::WriteServices, Role::Operator),
    ];
    assert_eq!(table, expected);
}

#[tokio::test]
async fn a_higher_role_includes_the_lower_ones() {
    let issuer = Issuer::start();
    let guard = Guard::trusting(&issuer);
    for role in [Role::Auditor, Role::Operator, Role::Admin] {
        let token = issuer.token_for(role.name());
        for action in Action::ALL {
            let answer = guard.ask(&token, action).await;
            match action.needs() {
                needs if role >= needs => assert_eq!(answer.unwrap().role, Some(role)),
                needs => assert_eq!(answer, Err(AuthError::PermissionDenied { needs })),
            }
        }
    }
}

#[tokio::test]
async fn nothing_goes_without_a_token() {
    let guard = Guard::new(&[], None);
    for action in Action::ALL {
        let answer = guard.auth.authorize(None, action).await;
        assert_eq!(answer, Err(AuthError::MissingToken), "{action:?}");
    }
}

#[tokio::test]
async fn with_auth_off_everybody_may_do_everything() {
    let guard = Guard::new(&[("auth.mode", "off")], None);
    let actor = guard.auth.authorize(None, Action::DeleteRules).await.unwrap();
    assert_eq!(actor, Actor { name: "anonymous".into(), role: Some(Role::Admin) });
    assert!(guard.ask("whatever", Action::DeleteRules).await.is_ok());
}

#[test]
fn errors_say_what_to_do() {
    let denied = AuthError::PermissionDenied { needs: Role::Operator };
    let cases = [
        (
            AuthError::MissingToken,
            "SYS_AUTH_MISSING_TOKEN",
            "a token is needed here: send it as authorization: Bearer TOKEN",
        ),
        (Refusal::Expired.into(), "SYS_AUTH_TOKEN_INVALID", "the token has expired: get a new one"),
        (
            denied,
            "SYS_AUTH_PERMISSION_DENIED",
            "the role sys_operator or a higher one is needed here: ask for a token that has it",
        ),
    ];
    for (error, code, message) in cases {
        assert_eq!((error.code(), error.message().as_str()), (code, message));
    }
}
