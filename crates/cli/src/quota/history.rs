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

/// Show how much was used, period by period, the newest first.
#[derive(Debug, Args)]
pub(super) struct History {
    /// The policy's id.
    id: String,
    /// Which page, from 1.
    #[arg(long, default_value_t = 1)]
    page: u32,
    /// How many periods a page has, up to 100.
    #[arg(long, default_value_t = 20)]
    page_size: u32,
}

#[derive(Deserialize)]
struct Page {
    history: Vec<Period>,
}

#[derive(Deserialize)]
struct Period {
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
        let Page { history } = reply.json()?;
        Ok(output.print(&reply, |out| write(&history, out))?)
    }
}

fn write(periods: &[Period], out: &mut dyn Write) -> io::Result<()> {
    if periods.is_empty() {
        return writeln!(out, "nothing was used");
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
