//! Runs the unmodified integration tests of envoyproxy/ratelimit against the binary.

use std::path::Path;

use headgate_testkit::{RatelimitTests, require};

/// Number of configuration files of its examples, tests and manual that both services read alike.
const FILES: &str = "files: 40 of 40";

/// Number of random requests with the same response: status, limit, remaining and reset.
const ANSWERS: &str = "answers: 2000 of 2000";

/// Tests that pass as a whole, statistics included: all but those of the local cache.
const TESTS: &str = "tests that pass as they are written: 13";

const RESPONSES: &str = "response assertions: 611 of 611";

const XDS: &str = "response assertions with a management server: 170 of 170";

#[test]
fn passes_the_integration_tests_of_envoyproxy_ratelimit() {
    let tests = require!(RatelimitTests::find());
    let summary = tests.run(Path::new(env!("CARGO_BIN_EXE_headgate")));
    let summary = summary.unwrap_or_else(|log| panic!("{log}"));
    assert_eq!(summary.lines().collect::<Vec<_>>(), [FILES, ANSWERS, TESTS, RESPONSES, XDS]);
}
