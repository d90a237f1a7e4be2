//! `headgate rules list`

use std::io::{self, Write};

use clap::Args;
use headgate_ratelimit::Window;

use super::{PATH, Rule};
use crate::{
    client::Client,
    failure::Failure,
    output::Output,
    pages,
    table::{Column, Table},
};

/// List rules.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only rules of this scope: service, user, endpoint or attributes.
    #[arg(long)]
    scope: Option<String>,
    /// Only enabled rules.
    #[arg(long)]
    enabled_only: bool,
}

impl List {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut filter: Vec<(&str, &str)> = Vec::new();
        filter.extend(self.scope.as_deref().map(|scope| ("scope", scope)));
        filter.extend(self.enabled_only.then_some(("enabled_only", "true")));
        let mut out = io::stdout().lock();
        match output {
            Output::Json => {
                pages::write_json(&mut out, "rules", &pages::all(client, &[PATH], &filter)?)?;
            }
            Output::Table => write(&pages::all(client, &[PATH], &filter)?, &mut out)?,
        }
        Ok(())
    }
}

fn write(rules: &[Rule], out: &mut dyn Write) -> io::Result<()> {
    if rules.is_empty() {
        return writeln!(out, "no rules");
    }
    let mut table = Table::new([
        Column::Text("ID"),
        Column::Text("SUBJECTS"),
        Column::Number("LIMIT"),
        Column::Number("WINDOW"),
        Column::Text("ALGORITHM"),
        Column::Text("ENABLED"),
        Column::Text("NAME"),
    ]);
    for Rule { id, spec, .. } in rules {
        table.row([
            id.clone(),
            spec.subjects(),
            spec.limit.to_string(),
            Window::from_secs(spec.window_seconds).to_string(),
            spec.algorithm.clone(),
            if spec.enabled { "yes" } else { "no" }.to_owned(),
            spec.name.clone().unwrap_or_default(),
        ]);
    }
    table.write(out)
}
