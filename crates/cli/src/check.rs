//! `headgate check`

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{Args, ValueEnum};
use hyper::header::RETRY_AFTER;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::client::{ClientError, Reply, Server};

/// Ask a server whether a subject may go on, and take one unit if it may.
///
/// Exits with 0 when it may, 2 when it may not, 1 when nobody knows.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// What kind of subject: service, user or endpoint.
    scope: String,
    /// Which one.
    identifier: String,
    /// Ask the rule with this window, such as 60s, 1m or 1h.
    #[arg(long)]
    window: Option<String>,
    /// The server to ask.
    #[arg(
        long,
        env = "HEADGATE_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    server: Server,
    /// How to print the decision.
    #[arg(long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// As the server sent it.
    Json,
}

/// Why there is no decision.
#[derive(Debug, Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("{0}")]
    Refused(Refusal),
    #[error("cannot print the decision: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

const DENIED: u8 = 2;

#[derive(Serialize)]
struct Question<'a> {
    scope: &'a str,
    identifier: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<&'a str>,
}

#[derive(Deserialize)]
struct Decision {
    allowed: bool,
    remaining: u64,
    reset_at: u64,
    limit: u64,
    reason: String,
}

#[derive(Deserialize)]
struct Envelope {
    error: Refusal,
}

/// An error as servers tell it.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    code: String,
    message: String,
    request_id: String,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Debug, Deserialize)]
struct Detail {
    message: String,
}

// === impl Check ===

impl Check {
    pub(crate) fn run(self) -> Result<ExitCode, CheckError> {
        let question = Question {
            scope: &self.scope,
            identifier: &self.identifier,
            window: self.window.as_deref(),
        };
        let reply = self.server.post("/api/v1/ratelimit/check", serde_json::to_vec(&question)?)?;
        let decision = self.decision(&reply)?;
        let mut out = io::stdout().lock();
        match self.output {
            Output::Json => writeln!(out, "{}", String::from_utf8_lossy(&reply.body))?,
            Output::Table => decision.print(&mut out, &reply)?,
        }
        Ok(if decision.allowed { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
    }

    fn decision(&self, reply: &Reply) -> Result<Decision, CheckError> {
        let garbled = |error| self.server.garbled(error);
        if reply.status.is_success() {
            return Ok(serde_json::from_slice(&reply.body).map_err(garbled)?);
        }
        let envelope: Envelope = serde_json::from_slice(&reply.body).map_err(garbled)?;
        Err(CheckError::Refused(envelope.error))
    }
}

// === impl Decision ===

impl Decision {
    fn print(&self, out: &mut impl Write, reply: &Reply) -> io::Result<()> {
        writeln!(out, "allowed      {}", if self.allowed { "yes" } else { "no" })?;
        writeln!(out, "limit        {}", self.limit)?;
        writeln!(out, "remaining    {}", self.remaining)?;
        writeln!(out, "reset at     {}", self.reset_at)?;
        if let Some(seconds) = reply.headers.get(RETRY_AFTER).and_then(|v| v.to_str().ok()) {
            writeln!(out, "retry after  {seconds} s")?;
        }
        if !self.reason.is_empty() {
            writeln!(out, "reason       {}", self.reason)?;
        }
        Ok(())
    }
}

// === impl Refusal ===

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)?;
        for detail in &self.details {
            write!(f, "\n  {}", detail.message)?;
        }
        write!(f, "\n({}, request {})", self.code, self.request_id)
    }
}
