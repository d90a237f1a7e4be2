//! `headgate rules apply`

use std::io::{self, IsTerminal, Write};

use clap::Args;
use reqwest::Method;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    PATH,
    file::{Drafts, Source},
    plan::Plan,
};
use crate::{
    client::{Client, ClientError, Reply},
    failure::Failure,
    output::Output,
};

/// Make the rules those of a file, all or nothing.
///
/// Prints the difference first. Rules that are not in the file stay, unless they are pruned.
#[derive(Debug, Args)]
pub(super) struct Apply {
    /// The rules, as YAML or JSON: a list, or a list under `rules`; `-` reads standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Source,
    /// Remove rules that are not in the file.
    #[arg(long)]
    prune: bool,
    /// Only print the difference.
    #[arg(long)]
    dry_run: bool,
    /// Remove rules without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct List<'a> {
    rules: &'a [Map<String, Value>],
    prune: bool,
    dry_run: bool,
    /// What was shown is done, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
}

impl Apply {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let drafts = Drafts::read(&self.file)?;
        let look = List { rules: drafts.rules(), prune: self.prune, dry_run: true, revision: None };
        let (mut reply, mut plan) = put(client, &drafts, &look)?;
        if matches!(output, Output::Table) {
            write_lines(&mut io::stdout().lock(), &plan.lines())?;
        }
        if !self.dry_run && !plan.is_empty() {
            self.confirm(&plan)?;
            let act = List { dry_run: false, revision: plan.revision, ..look };
            (reply, plan) = put(client, &drafts, &act)?;
        }
        Ok(output.print(&reply, |out| plan.write_summary(out))?)
    }

    /// Asks before rules are removed, if there is somebody to ask.
    fn confirm(&self, plan: &Plan) -> Result<(), Failure> {
        let stdin = io::stdin();
        if plan.deletions() == 0 || self.yes || !stdin.is_terminal() {
            return Ok(());
        }
        let mut err = io::stderr();
        write!(err, "Delete {} rules? [y/N] ", plan.deletions())?;
        err.flush()?;
        let mut answer = String::new();
        stdin.read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Declined) }
    }
}

/// Sends the list; where the server finds something wrong, it is told with its place in the file.
fn put(client: &Client, drafts: &Drafts, list: &List<'_>) -> Result<(Reply, Plan), ClientError> {
    let reply = client.send(Method::PUT, &[PATH], list).map_err(|error| match error {
        ClientError::Refused(refusal) => {
            ClientError::Refused(refusal.located(|field| drafts.place(field)))
        }
        other => other,
    })?;
    let plan = reply.json()?;
    Ok((reply, plan))
}

fn write_lines(out: &mut dyn Write, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}
