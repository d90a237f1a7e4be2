//! `headgate audit`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    change,
    client::Asking,
    failure::Failure,
    table::{Column, Table},
};

/// Show who changed what.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only what this caller did.
    #[arg(long)]
    actor: Option<String>,
    /// Only this action.
    #[arg(long)]
    action: Option<String>,
    /// Only what was done to this rule or subject.
    #[arg(long)]
    target: Option<String>,
    /// Only from this time on, such as 2026-02-20T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only until this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Which page.
    #[arg(long, default_value = "1", value_name = "N")]
    page: String,
    /// How many entries a page has, up to 100.
    #[arg(long, default_value = "20", value_name = "N")]
    page_size: String,
    #[command(flatten)]
    asking: Asking,
}

#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Pagination {
    total_count: u64,
    page: u64,
    has_next: bool,
}

#[derive(Deserialize)]
struct Entry {
    at: String,
    actor: String,
    action: String,
    target: String,
    target_name: Option<String>,
    before: Option<Map<String, Value>>,
    after: Option<Map<String, Value>>,
    request_id: String,
    reason: Option<String>,
}

impl Audit {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let filters = [
            ("actor", self.actor.as_deref()),
            ("action", self.action.as_deref()),
            ("target", self.target.as_deref()),
            ("since", self.since.as_deref()),
            ("until", self.until.as_deref()),
            ("page", Some(self.page.as_str())),
            ("page_size", Some(self.page_size.as_str())),
        ];
        let given = filters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let reply = self.asking.connect()?.get(&["audit"], &given.collect::<Vec<_>>())?;
        let entries: Entries = reply.json()?;
        self.asking.output.print(&reply, |out| entries.write(out))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Entries {
    fn write(self, out: &mut dyn Write) -> io::Result<()> {
        let Pagination { total_count, page, has_next } = self.pagination;
        let mut table = Table::new([
            Column::Text("AT"),
            Column::Text("ACTOR"),
            Column::Text("ACTION"),
            Column::Text("TARGET"),
            Column::Text("REQUEST"),
            Column::Text("CHANGE"),
        ]);
        for entry in self.entries {
            let (change, target) = (entry.change(), entry.target());
            table.row([entry.at, entry.actor, entry.action, target, entry.request_id, change]);
        }
        table.write(out)?;
        if has_next {
            writeln!(out, "{total_count} entries; more with --page {}", page + 1)?;
        }
        Ok(())
    }
}

impl Entry {
    /// What was changed, by its name if it has one.
    fn target(&self) -> String {
        match &self.target_name {
            Some(name) => format!("{name} ({})", self.target),
            None => self.target.clone(),
        }
    }

    /// What is different now, whether it was done, and why.
    fn change(&self) -> String {
        let changed = match (&self.before, &self.after) {
            (Some(before), Some(after)) => Some(change::between(before, after)),
            (None, Some(after)) => outcome(after),
            _ => None,
        };
        let told = [changed, self.reason.clone()];
        let told = told.into_iter().flatten().filter(|text| !text.is_empty());
        told.collect::<Vec<_>>().join("; ")
    }
}

/// What became of a reset that is not known to be done.
fn outcome(after: &Map<String, Value>) -> Option<String> {
    match after.get("outcome")?.as_str()? {
        "unknown" => Some("outcome unknown".to_owned()),
        "not_done" => Some("not done".to_owned()),
        other => Some(other.to_owned()),
    }
}
