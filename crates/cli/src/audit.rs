//! `headgate audit`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    client::ServerOptions,
    diff,
    failure::Failure,
    table::{Column, Table},
};

/// Show the audit log.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Only entries by this caller.
    #[arg(long)]
    actor: Option<String>,
    /// Only entries with this action.
    #[arg(long)]
    action: Option<String>,
    /// Only entries about this rule or subject.
    #[arg(long)]
    target: Option<String>,
    /// Only entries from this time on, such as 2026-02-20T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only entries before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Page number.
    #[arg(long, default_value = "1", value_name = "N")]
    page: String,
    /// Entries per page, up to 100.
    #[arg(long, default_value = "20", value_name = "N")]
    page_size: String,
    #[command(flatten)]
    options: ServerOptions,
}

#[derive(Deserialize)]
struct AuditPage {
    entries: Vec<AuditEntry>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Pagination {
    total_count: u64,
    page: u64,
    has_next: bool,
}

#[derive(Deserialize)]
struct AuditEntry {
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
        let reply = self.options.connect()?.get(&["audit"], &given.collect::<Vec<_>>())?;
        let entries: AuditPage = reply.json()?;
        self.options.output.print(&reply, |out| entries.write(out))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl AuditPage {
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

impl AuditEntry {
    /// The id of what was changed, with its name if it has one.
    fn target(&self) -> String {
        match &self.target_name {
            Some(name) => format!("{name} ({})", self.target),
            None => self.target.clone(),
        }
    }

    /// The changed fields or the outcome, and the reason.
    fn change(&self) -> String {
        let changed = match (&self.before, &self.after) {
            (Some(before), Some(after)) => Some(diff::between(before, after)),
            (None, Some(after)) => outcome(after),
            _ => None,
        };
        let parts = [changed, self.reason.clone()];
        let parts = parts.into_iter().flatten().filter(|text| !text.is_empty());
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// The outcome of a reset that is not known to have been done.
fn outcome(after: &Map<String, Value>) -> Option<String> {
    match after.get("outcome")?.as_str()? {
        "unknown" => Some("outcome unknown".to_owned()),
        "not_done" => Some("not done".to_owned()),
        other => Some(other.to_owned()),
    }
}
