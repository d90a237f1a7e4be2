//! `headgate quota list`

use std::io::{self, Write};

use clap::Args;

use super::Policy;
use crate::{
    client::Client,
    failure::Failure,
    output::Output,
    pages,
    table::{Column, Table},
};

/// List policies.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only policies for this type of subject: tenant, user or `api_key`.
    #[arg(long, value_name = "TYPE")]
    subject_type: Option<String>,
    /// Only the policy for the subject with this id.
    #[arg(long, value_name = "ID")]
    subject_id: Option<String>,
    /// Only enabled policies.
    #[arg(long)]
    enabled_only: bool,
}

impl List {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut filter: Vec<(&str, &str)> = Vec::new();
        filter.extend(self.subject_type.as_deref().map(|kind| ("subject_type", kind)));
        filter.extend(self.subject_id.as_deref().map(|id| ("subject_id", id)));
        filter.extend(self.enabled_only.then_some(("enabled_only", "true")));
        let mut out = io::stdout().lock();
        match output {
            Output::Json => {
                pages::write_json(&mut out, "quotas", &pages::all(client, &[], &filter)?)?;
            }
            Output::Table => write(&pages::all(client, &[], &filter)?, &mut out)?,
        }
        Ok(())
    }
}

fn write(policies: &[Policy], out: &mut dyn Write) -> io::Result<()> {
    if policies.is_empty() {
        return writeln!(out, "no quotas");
    }
    let mut table = Table::new([
        Column::Text("ID"),
        Column::Text("SUBJECT"),
        Column::Number("LIMIT"),
        Column::Text("PERIOD"),
        Column::Text("ENABLED"),
        Column::Text("NAME"),
    ]);
    for policy in policies {
        table.row([
            policy.id.clone(),
            policy.subject(),
            policy.limit.to_string(),
            policy.period.clone(),
            if policy.enabled { "yes" } else { "no" }.to_owned(),
            policy.name.clone(),
        ]);
    }
    table.write(out)
}
