//! Findings, and how they are printed.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
};

use serde::Serialize;
use serde_json::json;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) area: &'static str,
    pub(super) level: Level,
    pub(super) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    /// Works, but not as well or as long as it should.
    Warning,
    /// The server does not start, or does not do its work.
    Error,
}

/// All findings.
pub(super) struct Report(Vec<Finding>);

// === impl Finding ===

impl Finding {
    pub(super) fn ok(area: &'static str, message: impl Into<String>) -> Self {
        Self { area, level: Level::Ok, message: message.into(), advice: None }
    }

    pub(super) fn warning(
        area: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { area, level: Level::Warning, message: message.into(), advice }
    }

    pub(super) fn error(
        area: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(advice.into());
        Self { area, level: Level::Error, message: message.into(), advice }
    }
}

// === impl Level ===

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// ANSI colour: green, yellow, red.
    const fn colour(self) -> &'static str {
        match self {
            Self::Ok => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Error => "\x1b[31m",
        }
    }
}

// === impl Report ===

impl Report {
    pub(super) fn new(findings: Vec<Finding>) -> Self {
        Self(findings)
    }

    /// Returns true if there is no error and, if `strict`, no warning.
    pub(super) fn passes(&self, strict: bool) -> bool {
        self.worst() <= if strict { Level::Ok } else { Level::Warning }
    }

    pub(super) fn print(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let colours = out.is_terminal();
        write!(out, "{}", Lines { report: self, colours })
    }

    pub(super) fn print_json(&self) -> io::Result<()> {
        let printed = json!({ "status": self.worst(), "findings": self.0 });
        writeln!(io::stdout(), "{printed}")
    }

    fn worst(&self) -> Level {
        self.0.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }
}

/// The report as text.
struct Lines<'a> {
    report: &'a Report,
    colours: bool,
}

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { area, level, message, advice } in &self.report.0 {
            let (colour, plain) = if self.colours { (level.colour(), "\x1b[0m") } else { ("", "") };
            let level = level.name();
            // Further lines of a message are aligned with the first.
            let message = message.replace('\n', &format!("\n{:25}", ""));
            writeln!(f, "{colour}{level:<8}{plain} {area:<15} {message}")?;
            if let Some(advice) = advice {
                writeln!(f, "{:25}-> {advice}", "")?;
            }
        }
        let (errors, warnings) =
            (self.report.count(Level::Error), self.report.count(Level::Warning));
        writeln!(f, "{errors} errors, {warnings} warnings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_level_area_and_advice_without_colours() {
        let report = Report::new(vec![
            Finding::ok("database", "SQLite"),
            Finding::warning("redis", "old", "upgrade"),
        ]);
        assert_eq!(
            Lines { report: &report, colours: false }.to_string(),
            "ok       database        SQLite\n\
             warning  redis           old\n                         -> upgrade\n\
             0 errors, 1 warnings\n"
        );
        assert!(Lines { report: &report, colours: true }.to_string().contains("\x1b[33mwarning"));
    }

    #[test]
    fn warnings_fail_only_if_strict() {
        let report = Report::new(vec![Finding::warning("redis", "old", "upgrade")]);
        assert!(report.passes(false) && !report.passes(true));
        let report = Report::new(vec![Finding::error("redis", "down", "start it")]);
        assert!(!report.passes(false));
        assert!(Report::new(Vec::new()).passes(true));
    }
}
