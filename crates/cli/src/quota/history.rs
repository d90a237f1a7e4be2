//! `headgate quota history`

use std::io::{self, Write};

use clap::Args;
use serde::Deserialize;

use crate::{
    client::Client,
    failure::Failure,
    output::Output,
    table::{Column, Table},
};

/// Show the usage of each period, newest first.
#[derive(Debug, Args)]
pub(super) struct History {
    /// Policy id.
    id: String,
    /// Page number, from 1.
    #[arg(long, default_value_t = 1)]
    page: u32,
    /// Periods per page, up to 100.
    #[arg(long, default_value_t = 20)]
    page_size: u32,
}

#[derive(Deserialize)]
struct HistoryPage {
    history: Vec<PeriodUsage>,
}

#[derive(Deserialize)]
struct PeriodUsage {
    #[serde(rename = "period_name")]
    name: String,
    limit: u64,
    used: u64,
    usage_percent: f64,
    closed: bool,
}

impl History {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let (page, size) = (self.page.to_string(), self.page_size.to_string());
        let query = [("page", page.as_str()), ("page_size", size.as_str())];
        let reply = client.get(&[&self.id, "history"], &query)?;
        let HistoryPage { history } = reply.json()?;
        Ok(output.print(&reply, |out| write(&history, out))?)
    }
}

fn write(periods: &[PeriodUsage], out: &mut dyn Write) -> io::Result<()> {
    if periods.is_empty() {
        return writeln!(out, "no usage");
    }
    let mut table = Table::new([
        Column::Text("PERIOD"),
        Column::Number("USED"),
        Column::Number("LIMIT"),
        Column::Number("PERCENT"),
        Column::Text("CLOSED"),
    ]);
    for period in periods {
        table.row([
            period.name.clone(),
            period.used.to_string(),
            period.limit.to_string(),
            period.usage_percent.to_string(),
            if period.closed { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table.write(out)
}
