mod client_certificates;
mod issuer;
mod jwt;
mod static_tokens;

use std::{path::Path, sync::Arc};

use headgate::{Clock, ManualClock, SystemClock};
use headgate_config::{ConfigError, Schema, SectionList};
use headgate_testkit::Issuer;
use serde::Deserialize;

use crate::{
    Action, Actor, AdminToken, Auth, AuthConfig, AuthError, AuthMethod, Credentials, Role,
    TokenError,
};

/// A configuration with this section alone.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) auth: AuthConfig,
}

pub(crate) const SCHEMA: Schema = Schema {
    variable_prefix: "HEADGATE__",
    secrets: &[],
    section_lists: &[
        SectionList {
            key: "auth.tokens",
            example: "[{name: ci, role: sys_operator, token_file: /run/secrets/ci}]",
            secret: Some("token"),
        },
        SectionList {
            key: "auth.client_certificates",
            example: "[{name: gateway.example, role: sys_operator}]",
            secret: None,
        },
    ],
};

impl Config {
    pub(crate) fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        SCHEMA.load(file, environment, |config: &Self| config.auth.contradictions())
    }
}

fn config(keys: &[(&str, &str)]) -> Config {
    let variables = keys.iter().map(|(key, value)| {
        let name = format!("HEADGATE__{}", key.to_ascii_uppercase().replace('.', "__"));
        (name, (*value).to_owned())
    });
    Config::load(None, variables).unwrap()
}

/// Credentials with this `authorization` value.
fn bearer(authorization: &[u8]) -> Credentials<'_> {
    Credentials { authorization: Some(authorization), certificate: None }
}

/// Authentication under a clock that the test advances.
struct TestAuth {
    auth: Auth,
    clock: Arc<ManualClock>,
}

impl TestAuth {
    /// Sets these keys, such as `("auth.mode", "off")`.
    fn new(keys: &[(&str, &str)], admin: Option<&AdminToken>) -> Self {
        let clock = Arc::new(ManualClock::new(SystemClock::new().now()));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        Self { auth: Auth::new(&config(keys).auth, admin, shared).unwrap(), clock }
    }

    /// The same server with these keys instead.
    fn reconfigured(&self, keys: &[(&str, &str)]) -> Self {
        let (config, clock) = (config(keys), Arc::clone(&self.clock));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        Self { auth: self.auth.reconfigured(&config.auth, None, shared).unwrap(), clock }
    }

    /// Trusts the JWTs of `issuer`.
    fn trusting(issuer: &Issuer) -> Self {
        Self::new(&[("auth.jwks_url", &issuer.url())], None)
    }

    async fn ask(&self, token: &str, action: Action) -> Result<Actor, AuthError> {
        self.auth.authorize(bearer(format!("Bearer {token}").as_bytes()), action).await
    }

    /// Performs an action that every role allows.
    async fn read(&self, token: &str) -> Result<Actor, AuthError> {
        self.ask(token, Action::ReadRules).await
    }

    /// Returns why the token is rejected.
    async fn token_error(&self, token: &str) -> TokenError {
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
        (Action::ReloadConfig, Role::Admin),
    ];
    assert_eq!(table, expected);
}

#[tokio::test]
async fn a_higher_role_includes_the_lower_ones() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
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
async fn every_action_needs_a_token() {
    let guard = TestAuth::new(&[], None);
    for action in Action::ALL {
        let answer = guard.auth.authorize(Credentials::default(), action).await;
        assert_eq!(answer, Err(AuthError::MissingToken), "{action:?}");
    }
}

#[tokio::test]
async fn mode_off_permits_everything() {
    let guard = TestAuth::new(&[("auth.mode", "off")], None);
    let actor = guard.auth.authorize(Credentials::default(), Action::DeleteRules).await.unwrap();
    assert_eq!(
        actor,
        Actor { name: "anonymous".into(), role: Some(Role::Admin), method: AuthMethod::Off }
    );
    assert!(guard.ask("whatever", Action::DeleteRules).await.is_ok());
}

#[test]
fn errors_say_what_to_do() {
    let denied = AuthError::PermissionDenied { needs: Role::Operator };
    let cases = [
        (
            AuthError::MissingToken,
            "SYS_AUTH_MISSING_TOKEN",
            "missing token: send it as authorization: Bearer TOKEN",
        ),
        (TokenError::Expired.into(), "SYS_AUTH_TOKEN_INVALID", "token expired: get a new one"),
        (
            denied,
            "SYS_AUTH_PERMISSION_DENIED",
            "permission denied: this needs the role sys_operator or a higher one",
        ),
    ];
    for (error, code, message) in cases {
        assert_eq!((error.code(), error.message().as_str()), (code, message));
    }
}
