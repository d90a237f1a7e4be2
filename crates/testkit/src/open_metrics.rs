//! The `OpenMetrics` parser of `prometheus_client`, Prometheus's library for Python.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{Skip, cache};

const NAME: &str = "prometheus-client";

/// Prints a line for each family and one for each exemplar.
const SCRIPT: &str = r#"
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    print(family.type, family.name)
    for sample in family.samples:
        if sample.exemplar:
            print("exemplar", sample.name, sample.exemplar.labels["trace_id"])
"#;

/// The parser.
#[derive(Debug, Clone)]
pub struct OpenMetricsParser {
    python: PathBuf,
}

// === impl OpenMetricsParser ===

impl OpenMetricsParser {
    /// Finds the version that the test dependencies pin.
    ///
    /// # Errors
    ///
    /// [`Skip`] if it is not installed.
    pub fn find() -> Result<Self, Skip> {
        let python = cache::tool(NAME).map(|folder| folder.join("bin/python"));
        let python = python.filter(|python| python.is_file());
        let missing = || Skip::new(NAME, "not installed by scripts/install-test-deps");
        Ok(Self { python: python.ok_or_else(missing)? })
    }

    /// Parses `text` and returns a line for each family (`counter http_requests`) and each exemplar
    /// (`exemplar http_request_duration_seconds_bucket 0af7...`).
    ///
    /// # Errors
    ///
    /// The parser's error, if the text violates the standard.
    pub fn parse(&self, text: &str) -> Result<String, String> {
        self.try_parse(text).unwrap_or_else(|error| Err(error.to_string()))
    }

    fn try_parse(&self, text: &str) -> io::Result<Result<String, String>> {
        let mut command = Command::new(&self.python);
        command.args(["-c", SCRIPT]).env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut parser = command.spawn()?;
        // It reads all of its input before it writes.
        parser.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()))?;
        let output = parser.wait_with_output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        })
    }
}
