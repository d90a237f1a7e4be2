//! Authentication and authorization of callers, shared by all APIs.
//!
//! An API hands the [`Credentials`] of a request and an [`Action`] to [`Auth::authorize`], and gets an [`Actor`] for its audit entries or an [`AuthError`] to render.
//!
//! | module | contents |
//! |---|---|
//! | `auth` | [`Auth`]: authenticates a token and checks its role |
//! | `action`, `role` | [`Action`] and [`Role`]: the table of permissions |
//! | `actor`, `error` | the two answers: [`Actor`], or [`AuthError`] with its [`TokenError`] |
//! | `credentials` | [`Credentials`]: a token, or a client certificate |
//! | `bearer` | finds the token in an `authorization` value |
//! | `static_tokens`, `admin_token` | tokens from the configuration, and [`AdminToken`], which a first start creates |
//! | `client_certificates` | names of client certificates, and their roles |
//! | `jwt`, `claims`, `key` | verifies JWTs: RS256, ES256, EdDSA |
//! | `jwks`, `fetch` | fetches and caches the issuer's keys |
//! | [`oidc`] | sign-in at the issuer: authorization code flow with PKCE |
//! | `config` | the configuration: [`AuthConfig`], [`OidcConfig`] |

mod action;
mod actor;
mod admin_token;
mod auth;
mod bearer;
mod claims;
mod client_certificates;
mod config;
mod credentials;
mod error;
mod fetch;
mod jwks;
mod jwt;
mod key;
pub mod oidc;
mod role;
mod static_tokens;

pub use self::{
    action::Action,
    actor::{Actor, AuthMethod},
    admin_token::AdminToken,
    auth::Auth,
    config::{AuthConfig, AuthMode, ClientCertificateConfig, HttpUrl, OidcConfig, TokenConfig},
    credentials::Credentials,
    error::{AuthError, TokenError},
    fetch::FetchError,
    role::Role,
};

#[cfg(test)]
mod tests;
