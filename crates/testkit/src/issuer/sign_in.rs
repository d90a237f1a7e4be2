//! The authorization code flow with PKCE, without user interaction.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use http_body_util::{BodyExt, Collected, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::{IdToken, State, complete, lock};

/// An authorization request.
pub(super) struct AuthorizationRequest {
    client_id: String,
    redirect_uri: String,
    challenge: String,
    nonce: Option<String>,
}

type Parameters = HashMap<String, String>;

/// Responds to requests other than those for keys.
pub(super) async fn answer(
    request: Request<Incoming>,
    state: &Arc<Mutex<State>>,
) -> Response<Full<Bytes>> {
    let host = request.headers().get("host").and_then(|host| host.to_str().ok());
    let issuer = format!("http://{}", host.unwrap_or_default());
    let path = request.uri().path().to_owned();
    let query = parameters(request.uri().query().unwrap_or_default().as_bytes());
    let body = request.into_body().collect().await.map(Collected::to_bytes);
    let form = parameters(&body.unwrap_or_default());
    let (status, location, body) = match path.as_str() {
        "/.well-known/openid-configuration" => (200, None, described(&issuer)),
        "/authorize" => match authorize(&query, state) {
            Some(location) => (302, Some(location), Value::Null),
            None => (400, None, json!({"error": "invalid_request"})),
        },
        "/token" => match token(&issuer, &form, state) {
            Some(tokens) => (200, None, tokens),
            None => (400, None, json!({"error": "invalid_grant"})),
        },
        _ => (404, None, Value::Null),
    };
    let mut response =
        Response::builder().status(status).header("content-type", "application/json");
    if let Some(location) = location {
        response = response.header("location", location);
    }
    response.body(Full::new(body.to_string().into())).expect("a response")
}

fn parameters(encoded: &[u8]) -> Parameters {
    form_urlencoded::parse(encoded).into_owned().collect()
}

fn described(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/certs"),
    })
}

/// The redirect of an authorization request.
fn authorize(query: &Parameters, state: &Arc<Mutex<State>>) -> Option<String> {
    let given = |name: &str| query.get(name).filter(|value| !value.is_empty()).cloned();
    if given("response_type")? != "code" || given("code_challenge_method")? != "S256" {
        return None;
    }
    let asked = AuthorizationRequest {
        client_id: given("client_id")?,
        redirect_uri: given("redirect_uri")?,
        challenge: given("code_challenge")?,
        nonce: given("nonce"),
    };
    let mut issuer = lock(state);
    let code = format!("code-{}", issuer.codes.len() + 1);
    let back = form_urlencoded::Serializer::new(String::new())
        .append_pair("code", &code)
        .append_pair("state", &given("state")?)
        .finish();
    let location = format!("{}?{back}", asked.redirect_uri);
    issuer.codes.insert(code, asked);
    Some(location)
}

/// Exchanges a code for tokens, once.
fn token(issuer: &str, form: &Parameters, state: &Arc<Mutex<State>>) -> Option<Value> {
    let mut held = lock(state);
    let asked = held.codes.remove(form.get("code")?)?;
    let challenge = URL_SAFE.encode(digest(&SHA256, form.get("code_verifier")?.as_bytes()));
    let fits = form.get("grant_type")? == "authorization_code"
        && *form.get("client_id")? == asked.client_id
        && *form.get("redirect_uri")? == asked.redirect_uri
        && challenge == asked.challenge;
    let role = held.role.clone().filter(|_| fits)?;
    let email = format!("{role}@example.com");
    let claims = json!({"email": email, "realm_access": {"roles": [role]}});
    let key = held.keys.last()?;
    let mut tokens = json!({
        "token_type": "Bearer",
        "access_token": key.sign(&complete(issuer, claims)),
    });
    let nonce = match &held.id_token {
        IdToken::Requested => asked.nonce,
        IdToken::Nonce(other) => Some(other.clone()),
        IdToken::Missing => return Some(tokens),
    };
    let claims = json!({"aud": asked.client_id, "nonce": nonce});
    tokens["id_token"] = key.sign(&complete(issuer, claims)).into();
    Some(tokens)
}
