//! Summary of a domain file, for `headgate import envoy`.

use std::path::Path;

use headgate_config::ConfigError;

use crate::{
    EnvoyConfig,
    compiled::{CompiledFiles, compile, compile_all},
    domain::EntryRef,
    rule::{Amount, CountedRate},
    source::{FileSource, SourceFile},
};

/// Summary of a domain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSummary {
    /// The domain.
    pub domain: String,
    /// Its entries, sorted by descriptor.
    pub entries: Vec<EntrySummary>,
}

/// Summary of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySummary {
    /// Keys and the values that are in the file, outermost first.
    pub descriptor: String,
    /// The rate, such as `3 per minute`, `unlimited` or `none`.
    pub limit: String,
    /// The algorithm, if anything is counted.
    pub algorithm: String,
    /// Everything else, such as modes and names.
    pub notes: String,
}

/// Summarizes the file at `path`.
///
/// # Errors
///
/// Returns everything that is wrong with it.
pub fn summarize(path: &Path) -> Result<FileSummary, ConfigError> {
    let domain = compile(&SourceFile::read(path)?)?;
    let mut entries: Vec<EntrySummary> = domain.entries().iter().map(EntrySummary::new).collect();
    entries.sort_by(|a, b| a.descriptor.cmp(&b.descriptor));
    Ok(FileSummary { domain: domain.name, entries })
}

impl EnvoyConfig {
    /// Checks the files that are configured, if Envoy is enabled and they exist.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with them.
    pub fn check_files(&self) -> Result<(), ConfigError> {
        match FileSource::of(self).filter(|source| self.enabled && source.exists()) {
            Some(source) => compile_all(&source.read()?, &CompiledFiles::new()).map(drop),
            None => Ok(()),
        }
    }
}

// === impl EntrySummary ===

impl EntrySummary {
    fn new(entry: &EntryRef<'_>) -> Self {
        let (limit, algorithm) = match entry.rule.map(|rule| &rule.amount) {
            None => ("none".to_owned(), String::new()),
            Some(Amount::Unlimited) => ("unlimited".to_owned(), String::new()),
            Some(Amount::Limited(CountedRate { rate, .. })) if rate.requests == 0 => {
                ("0 (denies all)".to_owned(), String::new())
            }
            Some(Amount::Limited(CountedRate { rate, limit, .. })) => {
                let unit = rate.unit.name();
                let window = match rate.multiplier {
                    1 => unit.to_owned(),
                    multiplier => format!("{multiplier} {unit}s"),
                };
                (format!("{} per {window}", rate.requests), limit.algorithm().to_string())
            }
        };
        Self { descriptor: entry.path.clone(), limit, algorithm, notes: notes(entry) }
    }
}

fn notes(entry: &EntryRef<'_>) -> String {
    let mut notes = Vec::new();
    if let Some(rule) = entry.rule {
        if !rule.name.is_empty() {
            notes.push(format!("name {}", rule.name));
        }
        if !rule.replaces.is_empty() {
            notes.push(format!("replaces {}", rule.replaces.join(", ")));
        }
        if rule.shadow_mode {
            notes.push("shadow mode".to_owned());
        }
        if rule.quota_mode {
            notes.push("quota mode".to_owned());
        }
    }
    if entry.is_shared {
        notes.push("share threshold".to_owned());
    }
    notes.join("; ")
}
