//! The tests of envoyproxy/ratelimit, as they are written, against the real binary.

use std::path::Path;

use headgate_testkit::{RatelimitTests, require};

/// Its example and test files, and those of its manual: both services say the same of each.
const FILES: &str = "files: 40 of 40";

/// To the same requests, drawn at random: in statuses, limits, what is left and resets.
const ANSWERS: &str = "answers: 2000 of 2000";

/// All but those that look at a local cache pass as a whole, statistics included.
const TESTS: &str = "tests that pass as they are written: 13";

const RESPONSES: &str = "response assertions: 611 of 611";

const XDS: &str = "response assertions with a management server: 170 of 170";

#[test]
fn the_integration_tests_of_envoyproxy_ratelimit_hold_as_they_are_written() {
    let tests = require!(RatelimitTests::find());
    let told = tests.run(Path::new(env!("CARGO_BIN_EXE_headgate")));
    let told = told.unwrap_or_else(|log| panic!("{log}"));
    assert_eq!(told.lines().collect::<Vec<_>>(), [FILES, ANSWERS, TESTS, RESPONSES, XDS]);
}
