use std::{env, fs::OpenOptions, io::Write, path::PathBuf};

use thiserror::Error;

/// Components that continuous integration may lack, each with the reason why that is accepted.
pub const SKIPPABLE_IN_CI: &[(&str, &str)] = &[
    ("helm", "no package manager here has it: it is built from source where there is Go"),
    ("grpcurl", "no package manager here has it: it is built from source where there is Go"),
    ("envoyproxy/ratelimit", "its tests are built from source where there is Go"),
    ("go-control-plane", "it is built from source where there is Go"),
    ("mount", "only root can mount a small disk; file-size limits and locks need no such right"),
    ("luacheck", "a linter: what it looks at is run by other tests"),
];

/// A component that a test needs and this machine does not have.
///
/// Tests pass it to [`require!`](crate::require), which decides if its absence is tolerated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{component}: {reason}")]
pub struct Skip {
    /// The missing component, as in [`SKIPPABLE_IN_CI`].
    pub component: String,
    /// Reason that it cannot be used.
    pub reason: String,
}

/// Unwraps an `Ok`; on `Err(Skip)`, reports the missing component and returns from the test.
///
/// With `CI=true` an absent component fails the test instead, unless [`SKIPPABLE_IN_CI`] lists it.
/// Each skipped test is printed and, if `HEADGATE_SKIP_LOG` names a file, appended to it as
/// `component: reason (test)`.
#[macro_export]
macro_rules! require {
    ($server:expr) => {
        match $server {
            Ok(server) => server,
            Err(skip) => {
                // The type name of a function contains the path of the enclosing function: the
                // test.
                fn here() {}
                $crate::Skip::report(&skip, ::std::any::type_name_of_val(&here));
                return;
            }
        }
    };
}

// === impl Skip ===

impl Skip {
    pub(crate) fn new(component: &str, reason: impl Into<String>) -> Self {
        Self { component: component.into(), reason: reason.into() }
    }

    /// Reports that the test around `marker` was skipped, for [`require!`](crate::require).
    ///
    /// # Panics
    ///
    /// If the component must not be missing, or if the skip log cannot be written.
    #[doc(hidden)]
    #[expect(clippy::print_stderr, reason = "skipped tests have to be visible")]
    #[track_caller]
    pub fn report(&self, marker: &str) {
        let in_ci = env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci || self.is_skippable(SKIPPABLE_IN_CI), "{self}");

        let line = format!("{self} ({})\n", test_name(marker));
        eprint!("skipped: {line}");
        if let Some(log) = env::var_os("HEADGATE_SKIP_LOG") {
            // A single write, so that lines of concurrent tests do not mix.
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(log)
                .and_then(|mut log| log.write_all(line.as_bytes()))
                .expect("write to the file that HEADGATE_SKIP_LOG names");
        }
    }

    fn is_skippable(&self, list: &[(&str, &str)]) -> bool {
        list.iter().any(|(component, _)| *component == self.component)
    }
}

/// The path of an executable on `PATH`.
///
/// # Errors
///
/// [`Skip`] if it is not installed.
pub fn find_program(name: &str) -> Result<PathBuf, Skip> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| Skip::new(name, "not on PATH"))
}

fn test_name(marker: &str) -> &str {
    // The body of an async test is a closure in the test function.
    marker.trim_end_matches("::here").trim_end_matches("::{{closure}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_component_is_skippable() {
        let skip = Skip::new("envoy", "not on PATH");
        assert!(skip.is_skippable(&[("envoy", "no build for this platform")]));
        assert!(!skip.is_skippable(&[("kafka", "no build for this platform")]));
    }

    #[test]
    fn ci_sets_its_variable() {
        let run = include_str!("../../../.ci/run");
        let set = run.find("\nexport CI=true\n").expect("CI=true for every command");
        assert!(run.find("\nmake ").is_some_and(|make| set < make), "{run}");
    }

    #[test]
    fn the_name_of_an_async_test_is_found() {
        assert_eq!(test_name("conformance::on_redis::here"), "conformance::on_redis");
        assert_eq!(test_name("conformance::on_redis::{{closure}}::here"), "conformance::on_redis");
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_skip() {
        let skip = find_program("no-such-program").unwrap_err();
        assert_eq!(skip.to_string(), "no-such-program: not on PATH");
    }
}
