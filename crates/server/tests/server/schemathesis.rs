//! The server keeps every word of its own description, whatever it is sent.

use headgate_testkit::{Schemathesis, require};

use crate::harness::Server;

/// All that Schemathesis knows to look for, but
/// - `positive_data_acceptance`: whether a request fits also depends on the rules that there
///   are (`window`, `burst`), which no schema can say.
const NOT_CHECKED: &str = "positive_data_acceptance";

#[tokio::test(flavor = "multi_thread")]
async fn no_request_makes_the_server_break_its_word() {
    let schemathesis = require!(Schemathesis::find());
    let server = Server::start(&[]).await;
    let token = server.admin_token.as_deref().expect("a first start");
    let document = format!("http://{}/api-docs/openapi.json", server.address);
    let authorization = format!("Authorization: Bearer {token}");
    let run = tokio::task::spawn_blocking(move || {
        let arguments = [
            ["--header", &authorization],
            ["--checks", "all"],
            ["--exclude-checks", NOT_CHECKED],
            ["--phases", "examples,coverage,fuzzing,stateful"],
            ["--max-examples", "20"],
            ["--seed", "1"],
        ];
        schemathesis.run(&document, arguments.as_flattened())
    });
    let outcome = run.await.expect("a run");
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
}
