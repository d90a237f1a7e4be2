//! `headgate quota events`

use std::{
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    client::{Client, ClientError},
    failure::Failure,
    output::Output,
};

/// Show quota events, oldest first.
#[derive(Debug, Args)]
pub(super) struct Events {
    /// Keep running and print new events.
    #[arg(long)]
    follow: bool,
    /// Only events after this cursor, as an earlier run printed it.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Only events of this policy.
    #[arg(long, value_name = "ID")]
    quota: Option<String>,
}

#[derive(Deserialize)]
struct EventPage {
    events: Vec<Box<RawValue>>,
    next: String,
}

#[derive(Deserialize)]
struct QuotaEvent {
    event_type: String,
    quota_id: String,
    subject_type: String,
    subject_id: String,
    period: String,
    limit: u64,
    used: u64,
    exceeded_at: Option<String>,
    reached_at: Option<String>,
}

/// Events per request.
const PAGE_SIZE: &str = "100";

/// Interval between polls, and between attempts to reach a server that is down.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Events {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut after = self.after.clone().unwrap_or_else(|| "0".to_owned());
        // If the first request fails, the URL is most likely wrong.
        let mut connected = false;
        loop {
            let page = match self.page(client, &after) {
                Err(error) if self.follow && connected && is_outage(&error) => {
                    client.pause(POLL_INTERVAL);
                    continue;
                }
                page => page?,
            };
            connected = true;
            let is_end = page.next == after;
            after.clone_from(&page.next);
            print(&page.events, output, client)?;
            match (is_end, self.follow) {
                (true, true) => client.pause(POLL_INTERVAL),
                (true, false) => break,
                (false, _) => {}
            }
        }
        // On standard error, so that standard output has nothing but events.
        writeln!(io::stderr(), "continue with: --after {after}")?;
        Ok(())
    }

    fn page(&self, client: &Client, after: &str) -> Result<EventPage, ClientError> {
        let mut query = vec![("after", after), ("limit", PAGE_SIZE)];
        query.extend(self.quota.as_deref().map(|id| ("quota_id", id)));
        client.get(&[], &query)?.json()
    }
}

fn is_outage(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { .. } | ClientError::TimedOut { .. })
}

/// Prints one line per event and flushes, so that readers of a pipe see them at once.
fn print(events: &[Box<RawValue>], output: Output, client: &Client) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for raw in events {
        match output {
            Output::Json => writeln!(out, "{raw}")?,
            Output::Table => {
                let event = serde_json::from_str::<QuotaEvent>(raw.get());
                event.map_err(|error| client.unexpected(&error))?.write(&mut out)?;
            }
        }
    }
    Ok(out.flush()?)
}

impl QuotaEvent {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let at = self.exceeded_at.as_deref().or(self.reached_at.as_deref()).unwrap_or("-");
        let Self { event_type, quota_id, subject_type, period, used, limit, .. } = self;
        // Quote unusual identifiers, so that none looks like another field or line.
        let subject = if self.subject_id.chars().all(|c| c.is_alphanumeric() || "-_.@".contains(c))
        {
            self.subject_id.clone()
        } else {
            Value::from(self.subject_id.as_str()).to_string()
        };
        writeln!(
            out,
            "{at}  {event_type:<23}  {quota_id}  {subject_type}:{subject}  {used}/{limit} {period}"
        )
    }
}
