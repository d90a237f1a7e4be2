//! Third-party Nostr clients, driven by scripts: nostr-tools on Node.js, aionostr on Python.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Skip, cache, skip::find_program};

const NOSTR_TOOLS: &str = "nostr-tools";
const AIONOSTR: &str = "aionostr";

/// A client library and the program that runs scripts which use it.
#[derive(Debug, Clone)]
pub struct NostrClient {
    program: PathBuf,
    modules: Option<PathBuf>,
}

// === impl NostrClient ===

impl NostrClient {
    /// nostr-tools, as the test dependencies pin it, on the Node.js of `PATH`.
    ///
    /// # Errors
    ///
    /// [`Skip`] if one of them is not installed.
    pub fn nostr_tools() -> Result<Self, Skip> {
        let program = find_program("node")?;
        let modules = cache::tool(NOSTR_TOOLS).map(|folder| folder.join("node_modules"));
        let complete =
            |folder: &PathBuf| [NOSTR_TOOLS, "ws"].iter().all(|name| folder.join(name).is_dir());
        let modules = modules.filter(complete).ok_or_else(|| missing(NOSTR_TOOLS))?;
        Ok(Self { program, modules: Some(modules) })
    }

    /// aionostr, as the test dependencies pin it, with its own Python.
    ///
    /// # Errors
    ///
    /// [`Skip`] if it is not installed.
    pub fn aionostr() -> Result<Self, Skip> {
        let program = cache::tool(AIONOSTR).map(|folder| folder.join("bin/python"));
        let program = program.filter(|program| program.is_file());
        Ok(Self { program: program.ok_or_else(|| missing(AIONOSTR))?, modules: None })
    }

    /// Runs `script`, which finds packages of Node.js in the folder `HEADGATE_NODE_MODULES`.
    pub fn script(&self, script: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(script);
        command.envs(self.modules.iter().map(|modules| ("HEADGATE_NODE_MODULES", modules)));
        command.env("NO_PROXY", "127.0.0.1,localhost").env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

fn missing(component: &str) -> Skip {
    Skip::new(component, "not installed by scripts/install-test-deps")
}
