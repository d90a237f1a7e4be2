//! `headgate rules export`

use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::{
    PATH,
    rule::{Lease, Limit, Rule, Spec},
};
use crate::{client::Client, failure::Failure, output::Output, pages};

#[derive(Serialize)]
struct Exported {
    rules: Vec<Spec>,
}

pub(super) fn run(client: &Client, output: Output) -> Result<(), Failure> {
    let rules: Vec<Rule> = pages::all(client, &[PATH], &[])?;
    let exported = Exported { rules: rules.into_iter().map(|rule| rule.spec).collect() };
    let mut out = io::stdout().lock();
    match output {
        Output::Table => exported.write_yaml(&mut out)?,
        Output::Json => {
            serde_json::to_writer(&mut out, &exported).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(())
}

impl Exported {
    fn write_yaml(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.rules.is_empty() {
            return writeln!(out, "rules: []");
        }
        writeln!(out, "rules:")?;
        self.rules.iter().try_for_each(|spec| write_rule(spec, out))
    }
}

/// Strings are quoted as in JSON, so that YAML never reads them as a number or null.
fn write_rule(spec: &Spec, out: &mut dyn Write) -> io::Result<()> {
    if let Some(when) = &spec.when {
        // JSON is YAML.
        writeln!(out, "  - when: {when}")?;
        let per = spec.per.iter().flatten().map(|name| quoted(name)).collect::<Vec<_>>();
        writeln!(out, "    per: [{}]", per.join(", "))?;
        writeln!(out, "    priority: {}", spec.priority.unwrap_or_default())?;
        writeln!(out, "    stops: {}", spec.stops.unwrap_or_default())?;
    } else {
        writeln!(out, "  - scope: {}", spec.scope)?;
        writeln!(out, "    identifier_pattern: {}", quoted(&spec.identifier_pattern))?;
    }
    match &spec.limit {
        Limit::Number(number) => writeln!(out, "    limit: {number}")?,
        // JSON is YAML.
        Limit::ByPlan(fields) => writeln!(out, "    limit: {}", json!(fields))?,
    }
    writeln!(out, "    window_seconds: {}", spec.window_seconds)?;
    writeln!(out, "    algorithm: {}", spec.algorithm)?;
    if let Some(burst) = spec.burst {
        writeln!(out, "    burst: {burst}")?;
    }
    if let Some(mode) = &spec.fail_mode {
        writeln!(out, "    fail_mode: {mode}")?;
    }
    if let Some(lease) = spec.lease {
        let Lease { share_percent, hold_ms } = lease;
        writeln!(out, "    lease: {{share_percent: {share_percent}, hold_ms: {hold_ms}}}")?;
    }
    if let Some(name) = &spec.name {
        writeln!(out, "    name: {}", quoted(name))?;
    }
    writeln!(out, "    enabled: {}", spec.enabled)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
