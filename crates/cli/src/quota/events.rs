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

/// Show what happened to quotas, the oldest first.
#[derive(Debug, Args)]
pub(super) struct Events {
    /// Go on, and show what happens as it happens.
    #[arg(long)]
    follow: bool,
    /// Only what comes after this place, as it was printed before.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    /// Only what happened to this policy.
    #[arg(long, value_name = "ID")]
    quota: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    events: Vec<Box<RawValue>>,
    next: String,
}

#[derive(Deserialize)]
struct Happened {
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

/// How many are asked for at a time.
const AT_A_TIME: &str = "100";

/// How often a server is asked what is new, and whether it is back.
const PAUSE: Duration = Duration::from_secs(1);

impl Events {
    pub(super) fn run(&self, client: &Client, output: Output) -> Result<(), Failure> {
        let mut after = self.after.clone().unwrap_or_else(|| "0".to_owned());
        // Whoever cannot be reached at first is most likely named wrongly.
        let mut was_there = false;
        loop {
            let page = match self.page(client, &after) {
                Err(error) if self.follow && was_there && is_outage(&error) => {
                    client.pause(PAUSE);
                    continue;
                }
                page => page?,
            };
            was_there = true;
            let is_end = page.next == after;
            after.clone_from(&page.next);
            print(&page.events, output, client)?;
            match (is_end, self.follow) {
                (true, true) => client.pause(PAUSE),
                (true, false) => break,
                (false, _) => {}
            }
        }
        // Beside the events, so that a program that reads those reads nothing else.
        writeln!(io::stderr(), "what comes next: --after {after}")?;
        Ok(())
    }

    fn page(&self, client: &Client, after: &str) -> Result<Page, ClientError> {
        let mut query = vec![("after", after), ("limit", AT_A_TIME)];
        query.extend(self.quota.as_deref().map(|id| ("quota_id", id)));
        client.get(&[], &query)?.json()
    }
}

fn is_outage(error: &ClientError) -> bool {
    matches!(error, ClientError::Unreachable { .. } | ClientError::TimedOut { .. })
}

/// One line each, at once: somebody may wait for it.
fn print(events: &[Box<RawValue>], output: Output, client: &Client) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for raw in events {
        match output {
            Output::Json => writeln!(out, "{raw}")?,
            Output::Table => {
                let event = serde_json::from_str::<Happened>(raw.get());
                event.map_err(|error| client.garbled(&error))?.write(&mut out)?;
            }
        }
    }
    Ok(out.flush()?)
}

impl Happened {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let at = self.exceeded_at.as_deref().or(self.reached_at.as_deref()).unwrap_or("-");
        let Self { event_type, quota_id, subject_type, period, used, limit, .. } = self;
        // Quoted where it is not plain: a name shall not look like another line.
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
