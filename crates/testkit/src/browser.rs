//! Chromium, driven by Playwright scripts on Node.js.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Skip, cache, skip::find_program};

const NAME: &str = "browser";

/// Node.js, Playwright and Chromium.
#[derive(Debug, Clone)]
pub struct Browser {
    node: PathBuf,
    chromium: PathBuf,
    modules: PathBuf,
}

// === impl Browser ===

impl Browser {
    /// Node.js and Chromium from `PATH`, and the packages that the test dependencies pin.
    ///
    /// # Errors
    ///
    /// [`Skip`] if one of them is not installed.
    pub fn find() -> Result<Self, Skip> {
        let node = find_program("node")?;
        let chromium = find_program("chromium").or_else(|_| find_program("google-chrome"))?;
        let modules = cache::tool(NAME).map(|folder| folder.join("node_modules"));
        let complete = |folder: &PathBuf| {
            ["playwright-core", "axe-core"].iter().all(|name| folder.join(name).is_dir())
        };
        let modules = modules.filter(complete);
        let missing = || Skip::new("playwright-core", "not installed by scripts/install-test-deps");
        Ok(Self { node, chromium, modules: modules.ok_or_else(missing)? })
    }

    /// Runs `script`, which finds the packages in the folder `HEADGATE_NODE_MODULES` and the
    /// browser at `HEADGATE_CHROMIUM`.
    pub fn script(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(script);
        command.env("HEADGATE_NODE_MODULES", &self.modules);
        command.env("HEADGATE_CHROMIUM", &self.chromium);
        command.env("NO_PROXY", "127.0.0.1,localhost");
        command
    }
}
