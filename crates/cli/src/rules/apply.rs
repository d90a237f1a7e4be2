//! `headgate rules apply`

use std::io::{self, IsTerminal, Write};

use clap::Args;
use headgate_rules_file::{Drafts, Source};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{PATH, plan::Plan};
use crate::{
    client::{Client, ClientError, Reply},
    failure::Failure,
    output::Output,
};

/// Apply the rules of a file, all or nothing.
///
/// Prints the difference first. Rules that are not in the file are kept, unless --prune is given.
#[derive(Debug, Args)]
pub(super) struct Apply {
    /// YAML or JSON file with a list of rules, alone or under `rules`; `-` reads standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Source,
    /// Delete rules that are not in the file.
    #[arg(long)]
    prune: bool,
    /// Only print the difference.
    #[arg(long)]
    dry_run: bool,
    /// Delete rules without asking for confirmation.
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct PutRules<'a> {
    rules: &'a [Map<String, Value>],
    prune: bool,
    dry_run: bool,
    /// Revision that the change is made for: the server refuses it if the rules have changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
}

impl Apply {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let drafts = Drafts::read(&self.file)?;
        let dry_run =
            PutRules { rules: drafts.rules(), prune: self.prune, dry_run: true, revision: None };
        let (mut reply, mut plan) = put(client, &drafts, &dry_run)?;
        if matches!(output, Output::Table) {
            write_lines(&mut io::stdout().lock(), &plan.lines())?;
        }
        if !self.dry_run && !plan.is_empty() {
            self.confirm(&plan)?;
            let request = PutRules { dry_run: false, revision: plan.revision, ..dry_run };
            (reply, plan) = put(client, &drafts, &request)?;
        }
        Ok(output.print(&reply, |out| plan.write_summary(out))?)
    }

    /// Asks for confirmation before rules are deleted, if standard input is a terminal.
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
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(Failure::Aborted) }
    }
}

/// Sends the rules. Errors about a field name its line in the file.
fn put(
    client: &Client,
    drafts: &Drafts,
    request: &PutRules<'_>,
) -> Result<(Reply, Plan), ClientError> {
    let reply = client.send(Method::PUT, &[PATH], request).map_err(|error| match error {
        ClientError::Refused(response) => {
            ClientError::Refused(response.located(|field| drafts.place(field)))
        }
        other => other,
    })?;
    let plan = reply.json()?;
    Ok((reply, plan))
}

fn write_lines(out: &mut dyn Write, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}
