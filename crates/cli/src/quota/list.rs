//! `headgate quota list`

use std::io::{self, Write};

use clap::Args;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::Policy;
use crate::{
    client::{Client, ClientError},
    failure::Failure,
    output::Output,
    table::{Column, Table},
};

/// Show all policies.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only policies about this kind of subject: tenant, user or `api_key`.
    #[arg(long, value_name = "TYPE")]
    subject_type: Option<String>,
    /// Only policies about the subject with this id.
    #[arg(long, value_name = "ID")]
    subject_id: Option<String>,
    /// Only policies that are enabled.
    #[arg(long)]
    enabled_only: bool,
}

/// Policies as a server sent them.
#[derive(Serialize)]
struct AllQuotas {
    quotas: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Page<T> {
    quotas: Vec<T>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Pagination {
    has_next: bool,
}

const MAX_PAGE_SIZE: &str = "100";

impl List {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut filter: Vec<(&str, &str)> = Vec::new();
        filter.extend(self.subject_type.as_deref().map(|kind| ("subject_type", kind)));
        filter.extend(self.subject_id.as_deref().map(|id| ("subject_id", id)));
        filter.extend(self.enabled_only.then_some(("enabled_only", "true")));
        let mut out = io::stdout().lock();
        match output {
            Output::Json => {
                let all = AllQuotas { quotas: all(client, &filter)? };
                serde_json::to_writer(&mut out, &all).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            Output::Table => write(&all(client, &filter)?, &mut out)?,
        }
        Ok(())
    }
}

/// Every policy that matches, whatever it takes to read it.
fn all<T: DeserializeOwned>(
    client: &Client,
    filter: &[(&str, &str)],
) -> Result<Vec<T>, ClientError> {
    let mut quotas = Vec::new();
    for number in 1_u64.. {
        let number = number.to_string();
        let mut query = vec![("page", number.as_str()), ("page_size", MAX_PAGE_SIZE)];
        query.extend(filter);
        let page: Page<T> = client.get(&[], &query)?.json()?;
        // A server that promises more and gives nothing would keep us here for ever.
        let more = page.pagination.has_next && !page.quotas.is_empty();
        quotas.extend(page.quotas);
        if !more {
            break;
        }
    }
    Ok(quotas)
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
