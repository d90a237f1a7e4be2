//! `headgate config reload`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    client::ServerOptions,
    failure::Failure,
    table::{Column, Table},
};

/// Make a server read its configuration again.
///
/// Prints what has changed, and which changes need a restart. Exits with 1 if the configuration is
/// invalid; nothing has changed then.
#[derive(Debug, Args)]
pub(crate) struct Reload {
    /// Only show what would change.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Deserialize)]
struct Reloaded {
    applied: Vec<Change>,
    restart_required: Vec<Change>,
}

#[derive(Deserialize)]
struct Change {
    key: String,
    old: Value,
    new: Value,
}

impl Reload {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let dry_run = [("dry_run", "true")];
        let query = if self.dry_run { &dry_run[..] } else { &[] };
        let reply = self.options.connect_to("config")?.post(&["reload"], query)?;
        let reloaded: Reloaded = reply.json()?;
        let applied = if self.dry_run { "would apply" } else { "applied" };
        self.options.output.print(&reply, |out| reloaded.write(out, applied))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Reloaded {
    fn write(&self, out: &mut dyn Write, applied: &'static str) -> io::Result<()> {
        if self.applied.is_empty() && self.restart_required.is_empty() {
            return writeln!(out, "nothing has changed");
        }
        let columns = ["EFFECT", "KEY", "OLD", "NEW"].map(Column::Text);
        let mut table = Table::new(columns);
        for (effect, changes) in
            [(applied, &self.applied), ("needs a restart", &self.restart_required)]
        {
            for Change { key, old, new } in changes {
                table.row([effect.to_owned(), key.clone(), old.to_string(), new.to_string()]);
            }
        }
        table.write(out)
    }
}
