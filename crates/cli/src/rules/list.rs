//! `headgate rules list`, and every list of rules that does not fit on a page.

use std::io::{self, Write};

use clap::Args;
use headgate_ratelimit::Window;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{PATH, Rule};
use crate::{
    client::{Client, ClientError},
    failure::Failure,
    output::Output,
    table::{Column, Table},
};

/// Show all rules.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only rules about this kind of subject: service, user or endpoint.
    #[arg(long)]
    scope: Option<String>,
    /// Only rules that are enabled.
    #[arg(long)]
    enabled_only: bool,
}

/// Rules as a server sent them.
#[derive(Serialize)]
struct AllRules {
    rules: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Page<T> {
    rules: Vec<T>,
    pagination: Pagination,
    /// Which rules it is of; servers of older versions do not say.
    revision: Option<i64>,
}

#[derive(Deserialize)]
struct Pagination {
    has_next: bool,
}

const MAX_PAGE_SIZE: &str = "100";

/// How often all pages are read again because rules were changed meanwhile.
const ATTEMPTS: usize = 5;

/// Every rule that matches, as they were at one moment, whatever it takes to read them.
pub(super) fn all<T: serde::de::DeserializeOwned>(
    client: &Client,
    filter: &[(&str, &str)],
) -> Result<Vec<T>, ClientError> {
    for _ in 0..ATTEMPTS {
        if let Some(rules) = pages(client, filter)? {
            return Ok(rules);
        }
    }
    Err(ClientError::Moving)
}

/// Reads all pages; `None` if they are not all of the same rules.
fn pages<T: serde::de::DeserializeOwned>(
    client: &Client,
    filter: &[(&str, &str)],
) -> Result<Option<Vec<T>>, ClientError> {
    let (mut rules, mut first) = (Vec::new(), None);
    for number in 1_u64.. {
        let number = number.to_string();
        let mut query = vec![("page", number.as_str()), ("page_size", MAX_PAGE_SIZE)];
        query.extend(filter);
        let page: Page<T> = client.get(&[PATH], &query)?.json()?;
        if *first.get_or_insert(page.revision) != page.revision {
            return Ok(None);
        }
        // A server that promises more and gives nothing would keep us here for ever.
        let more = page.pagination.has_next && !page.rules.is_empty();
        rules.extend(page.rules);
        if !more {
            break;
        }
    }
    Ok(Some(rules))
}

pub(super) fn print_deleted(id: &str, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match output {
        Output::Table => writeln!(out, "deleted {id}"),
        Output::Json => writeln!(out, "{}", serde_json::json!({ "deleted": id })),
    }
}

impl List {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut filter: Vec<(&str, &str)> = Vec::new();
        filter.extend(self.scope.as_deref().map(|scope| ("scope", scope)));
        filter.extend(self.enabled_only.then_some(("enabled_only", "true")));
        let mut out = io::stdout().lock();
        match output {
            Output::Json => {
                let all = AllRules { rules: all(client, &filter)? };
                serde_json::to_writer(&mut out, &all).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            Output::Table => write(&all(client, &filter)?, &mut out)?,
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
            spec.key(),
            spec.limit.to_string(),
            Window::from_secs(spec.window_seconds).to_string(),
            spec.algorithm.clone(),
            if spec.enabled { "yes" } else { "no" }.to_owned(),
            spec.name.clone().unwrap_or_default(),
        ]);
    }
    table.write(out)
}
