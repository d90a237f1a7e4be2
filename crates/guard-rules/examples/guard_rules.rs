//! An axum service whose limits are in a file: `cargo run -p headgate-guard-rules --example guard_rules --
//! rules.yaml`, then change the file while it runs.

use std::{env, error::Error, net::SocketAddr, time::Duration};

use axum::{Router, routing::get};
use headgate_guard_rules::{Extractors, RuleLayer, RuleSet, RulesFile};
use http::HeaderName;

type AnyError = Box<dyn Error + Send + Sync>;

pub(crate) fn router(rules: &RuleSet) -> Result<Router, AnyError> {
    let extractors = Extractors::new()
        .method("method")
        .path("path")
        .address("address")
        .header("tenant", HeaderName::from_static("x-tenant"));
    Ok(Router::new()
        .route("/v1/exports", get(async || "exported"))
        .layer(RuleLayer::new(rules, extractors)?))
}

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let path = env::args().nth(1).unwrap_or_else(|| "rules.yaml".to_owned());
    let rules = RuleSet::in_memory();
    let file = RulesFile::load(path, &rules)?;
    tokio::spawn(file.watch(Duration::from_secs(2)));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let app = router(&rules)?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await?;
    Ok(())
}
