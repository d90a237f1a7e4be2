//! Schemathesis: responses match the `OpenAPI` document, for valid and invalid requests.

use std::time::Duration;

use headgate_testkit::{Schemathesis, require};

use crate::{backend::Backend, harness::Server};

/// Checks of Schemathesis that are off:
/// - `positive_data_acceptance`: whether a request fits also depends on the rules that there
///   are (`window`) and on its other fields (`burst`), which no schema says.
/// - `negative_data_rejection`: a query parameter that is empty says nothing, which a schema
///   cannot say of one that is a number or a time. Bodies are looked at by themselves.
const NOT_CHECKED: &str = "positive_data_acceptance,negative_data_rejection";

/// Runs Schemathesis over the whole document, as the administrator.
async fn run(schemathesis: Schemathesis, server: Server, more: &[&'static str]) {
    let token = server.admin_token.as_deref().expect("a first start");
    let document = format!("http://{}/api-docs/openapi.json", server.address);
    let authorization = format!("Authorization: Bearer {token}");
    let more = more.to_vec();
    // A busy machine takes long, for a request and for all of them.
    let schemathesis = schemathesis.time_limit(Duration::from_mins(60));
    let run = tokio::task::spawn_blocking(move || {
        let mut arguments = vec!["--header", &authorization, "--seed", "1"];
        arguments.extend(["--request-timeout", "60"]);
        // The stream does not end.
        arguments.extend(["--exclude-path", "/api/v1/events/stream"]);
        arguments.extend(more);
        schemathesis.run(&document, &arguments)
    });
    let outcome = run.await.expect("a run");
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_matches_the_description() {
    let schemathesis = require!(Schemathesis::find());
    let phases = ["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "25"];
    let checks = ["--checks", "all", "--exclude-checks", NOT_CHECKED];
    run(schemathesis, Server::start(&[]).await, &[phases, checks].concat()).await;
}

/// The surface is the same, but SQL and scripts differ: runs the examples and boundary values
/// again, without fuzzing.
#[tokio::test(flavor = "multi_thread")]
async fn every_response_matches_the_description_on_postgres_and_redis() {
    let schemathesis = require!(Schemathesis::find());
    let backend = require!(Backend::postgres_and_redis());
    let phases = ["--phases", "examples,coverage,stateful", "--max-examples", "5"];
    let checks = ["--checks", "all", "--exclude-checks", NOT_CHECKED];
    run(schemathesis, backend.serve(&[]).await, &[phases, checks].concat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_violate_the_schema_are_rejected() {
    let schemathesis = require!(Schemathesis::find());
    let phases = ["--phases", "coverage,fuzzing", "--max-examples", "25", "--mode", "negative"];
    let checks = ["--checks", "negative_data_rejection"];
    let with_a_body = ["--include-method", "POST", "--include-method", "PUT"];
    let server = Server::start(&[]).await;
    run(schemathesis, server, &[&phases[..], &checks, &with_a_body].concat()).await;
}
