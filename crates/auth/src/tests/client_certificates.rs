//! Client certificates as actors.

use headgate_tls::{ClientCertificate, SubjectName};

use super::*;

const TOKEN: &str = "0123456789abcdef";

fn guard() -> TestAuth {
    let certificates = "[{name: 'spiffe://c/ns/*/sa/gateway', role: sys_operator}, \
                        {name: reader.example, role: sys_auditor}]";
    let tokens = format!("[{{name: ci, role: sys_auditor, token: {TOKEN}}}]");
    TestAuth::new(&[("auth.client_certificates", certificates), ("auth.tokens", &tokens)], None)
}

fn certificate(names: &[SubjectName]) -> ClientCertificate {
    ClientCertificate::from(names.to_vec())
}

fn gateway() -> ClientCertificate {
    certificate(&[
        SubjectName::Dns("gateway.example".to_owned()),
        SubjectName::Uri("spiffe://c/ns/prod/sa/gateway".to_owned()),
    ])
}

#[tokio::test]
async fn a_certificate_has_the_role_of_its_name() {
    let (guard, gateway) = (guard(), gateway());
    let credentials = Credentials { authorization: None, certificate: Some(&gateway) };
    let actor = guard.auth.authorize(credentials, Action::WriteRules).await.unwrap();
    assert_eq!(actor.name, "spiffe://c/ns/prod/sa/gateway");
    assert_eq!(actor.role, Some(Role::Operator));
    let denied = guard.auth.authorize(credentials, Action::DeleteRules).await;
    assert_eq!(denied, Err(AuthError::PermissionDenied { needs: Role::Admin }));
}

#[tokio::test]
async fn an_unknown_certificate_is_a_missing_token() {
    let guard = guard();
    for names in [vec![], vec![SubjectName::Dns("other.example".to_owned())]] {
        let unknown = certificate(&names);
        let credentials = Credentials { authorization: None, certificate: Some(&unknown) };
        let answer = guard.auth.authorize(credentials, Action::ReadRules).await;
        assert_eq!(answer, Err(AuthError::MissingToken));
    }
}

#[tokio::test]
async fn a_token_takes_precedence_over_a_certificate() {
    let (guard, gateway) = (guard(), gateway());
    let ask = async |authorization: &str, action| {
        let authorization = Some(authorization.as_bytes());
        let credentials = Credentials { authorization, certificate: Some(&gateway) };
        guard.auth.authorize(credentials, action).await
    };
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(ask(&bearer, Action::ReadRules).await.unwrap().name, "ci");
    let denied = ask(&bearer, Action::WriteRules).await;
    assert_eq!(denied, Err(AuthError::PermissionDenied { needs: Role::Operator }));
    let invalid = ask("Bearer fedcba9876543210", Action::ReadRules).await;
    assert_eq!(invalid, Err(AuthError::InvalidToken(TokenError::Unknown)));
}

#[test]
fn invalid_names_are_reported() {
    for (name, expected) in [
        ("''", "expected a DNS name"),
        ("'a b'", "expected a DNS name"),
        ("'*'", "a lone * would match"),
    ] {
        let list = format!("[{{name: {name}, role: sys_auditor}}]");
        let variable = ("HEADGATE__AUTH__CLIENT_CERTIFICATES".to_owned(), list);
        let error = Config::load(None, [variable]).err().unwrap().to_string();
        assert!(error.contains("auth.client_certificates[0].name"), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
