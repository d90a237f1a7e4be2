//! `headgate overrides list`

use std::io::{self, Write};

use clap::Args;

use super::{PATH, RuleOverride};
use crate::{
    client::Client,
    failure::Failure,
    output::Output,
    pages,
    table::{Column, Table},
};

/// List overrides.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only overrides of the rule with this id.
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only overrides whose subject contains this text.
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only overrides that have not ended.
    #[arg(long)]
    active_only: bool,
}

impl List {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut filter: Vec<(&str, &str)> = Vec::new();
        filter.extend(self.rule.as_deref().map(|rule| ("rule_id", rule)));
        filter.extend(self.search.as_deref().map(|text| ("search", text)));
        filter.extend(self.active_only.then_some(("active_only", "true")));
        let mut out = io::stdout().lock();
        match output {
            Output::Json => {
                pages::write_json(&mut out, "overrides", &pages::all(client, &[PATH], &filter)?)?;
            }
            Output::Table => write(pages::all(client, &[PATH], &filter)?, &mut out)?,
        }
        Ok(())
    }
}

fn write(overrides: Vec<RuleOverride>, out: &mut dyn Write) -> io::Result<()> {
    if overrides.is_empty() {
        return writeln!(out, "no overrides");
    }
    let mut table = Table::new([
        Column::Text("ID"),
        Column::Text("RULE"),
        Column::Text("SUBJECT"),
        Column::Number("LIMIT"),
        Column::Text("UNTIL"),
        Column::Text("ACTIVE"),
        Column::Text("REASON"),
    ]);
    for one in overrides {
        let subject = one.subject();
        table.row([
            one.id,
            one.rule_name.unwrap_or(one.rule_id),
            subject,
            one.limit.to_string(),
            one.until.unwrap_or_else(|| "-".to_owned()),
            if one.active { "yes" } else { "no" }.to_owned(),
            one.reason.unwrap_or_default(),
        ]);
    }
    table.write(out)
}
