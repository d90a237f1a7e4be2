//! An axum service behind a guard: `cargo run -p headgate-guard --example axum`, then
//! `curl -i localhost:3000/v1/auth/challenge` a few times.

use std::{error::Error, net::SocketAddr};

use axum::{Router, extract::Request, middleware, response::Response, routing::get};
use headgate_guard::{Allowance, Backend, Class, Guard, Policy, Routes, TrustedProxies};

type AnyError = Box<dyn Error + Send + Sync>;

/// Authenticated client of a request.
#[derive(Clone)]
struct Pubkey(String);

/// The limits, which can be replaced while the service runs.
pub(crate) fn policy(auth: u64, public: u64, protected: u64) -> Result<Policy, AnyError> {
    Ok(Policy::new([
        Class::new("auth")?.by_address(Allowance::per_minute(auth)?),
        Class::new("public")?.by_address(Allowance::per_minute(public)?).always_on(),
        Class::new("protected")?
            .by_address(Allowance::per_minute(2 * protected)?)
            .by_subject(Allowance::per_minute(protected)?)
            .by_address_after_auth(Allowance::per_minute(protected)?),
    ])?)
}

pub(crate) fn guard(backend: Backend, proxies: TrustedProxies) -> Result<Guard, AnyError> {
    let routes = Routes::new()
        .prefix("/v1/auth", "auth")
        .prefix("/v1/search", "protected")
        .otherwise("public");
    let guard = Guard::builder(policy(20, 120, 120)?, routes)
        .backend(backend)
        .trusted_proxies(proxies)
        .build()?;
    Ok(guard)
}

pub(crate) fn router(guard: &Guard) -> Router {
    let protected = Router::new()
        .route("/v1/search", get(async || "found"))
        // The last layer is the first to see a request.
        .layer(guard.layer_after_auth(|known| known.get::<Pubkey>().map(|key| key.0.as_str())))
        .layer(middleware::from_fn(authenticate));
    Router::new()
        .route("/v1/auth/challenge", get(async || "sign this"))
        .route("/v1/bootstrap/nodes", get(async || "[]"))
        .merge(protected)
        .layer(guard.layer())
}

/// Placeholder for real authentication.
async fn authenticate(mut request: Request, next: middleware::Next) -> Response {
    let pubkey = request.headers().get("x-pubkey").and_then(|value| value.to_str().ok());
    if let Some(pubkey) = pubkey.map(ToOwned::to_owned) {
        request.extensions_mut().insert(Pubkey(pubkey));
    }
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let guard = guard(Backend::memory(), TrustedProxies::default())?;
    let service = router(&guard).into_make_service_with_connect_info::<SocketAddr>();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, service).await?)
}
