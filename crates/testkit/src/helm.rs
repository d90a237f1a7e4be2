//! Helm.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::{Skip, cache, skip::find_program};

const NAME: &str = "helm";

/// Kubernetes version of the target. A build from source assumes an old one by default.
const KUBERNETES: &str = "1.34.0";

/// The program, ready to run.
#[derive(Debug, Clone)]
pub struct Helm(PathBuf);

// === impl Helm ===

impl Helm {
    /// The version that the test dependencies pin, or else the one on `PATH`.
    ///
    /// # Errors
    ///
    /// [`Skip`] if it is not installed.
    pub fn find() -> Result<Self, Skip> {
        let installed = cache::tool(NAME).map(|folder| folder.join(NAME));
        match installed.filter(|program| program.is_file()) {
            Some(program) => Ok(Self(program)),
            None => find_program(NAME).map(Self),
        }
    }

    /// Renders a chart as YAML: `helm template` with these arguments.
    ///
    /// # Errors
    ///
    /// The output, if it fails.
    pub fn template<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String, String> {
        self.run("template", arguments)
    }

    /// Lints a chart: `helm lint` with these arguments.
    ///
    /// # Errors
    ///
    /// The output, if it finds a fault.
    pub fn lint<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<String, String> {
        self.run("lint", arguments)
    }

    fn run<S: AsRef<OsStr>>(&self, command: &str, arguments: &[S]) -> Result<String, String> {
        let mut helm = Command::new(&self.0);
        helm.arg(command).args(arguments).args(["--kube-version", KUBERNETES]);
        let output = helm.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}
