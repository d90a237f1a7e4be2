//! A file in plain words, for those who bring it.

use std::path::Path;

use headgate_config::ConfigError;

use super::{
    rule::{Amount, Counted, Rule},
    source::{self, Compiled, Source},
};
use crate::config::EnvoyConfig;

/// One limit of a file, as it was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Understood {
    /// The domain.
    pub domain: String,
    /// Keys, and values that stand in the file, the outermost first.
    pub descriptor: String,
    /// How much is allowed.
    pub limit: String,
    /// How that is counted.
    pub algorithm: String,
    /// What else the file says of it.
    pub notes: String,
}

/// The limits of the file at `path`.
///
/// # Errors
///
/// Everything that is wrong with it, or that it cannot be read.
pub fn check(path: &Path) -> Result<Vec<Understood>, ConfigError> {
    let text = (path.to_owned(), source::text(path)?.into());
    let domain = source::domain(&text)?;
    let mut rules: Vec<Understood> =
        domain.rules().iter().map(|rule| Understood::new(&domain.name, rule)).collect();
    rules.sort_by(|a, b| a.descriptor.cmp(&b.descriptor));
    Ok(rules)
}

impl EnvoyConfig {
    /// Whether the files that it names can be used, if they are there.
    ///
    /// # Errors
    ///
    /// What is wrong with them, or that they cannot be read.
    pub fn check_present_files(&self) -> Result<(), ConfigError> {
        match Source::of(self).filter(|source| self.enabled && source.is_present()) {
            Some(source) => {
                let compiled = source::compiled(&source.read()?, &Compiled::new())?;
                source::domains(&compiled).map(drop)
            }
            None => Ok(()),
        }
    }
}

// === impl Understood ===

impl Understood {
    fn new(domain: &str, rule: &Rule) -> Self {
        let (limit, algorithm) = match &rule.amount {
            Amount::Unlimited => ("unlimited".to_owned(), String::new()),
            Amount::Limited(Counted { rate, .. }) if rate.requests == 0 => {
                ("0 (denies all)".to_owned(), String::new())
            }
            Amount::Limited(Counted { rate, limit, .. }) => {
                let unit = rate.unit.name();
                let window = match rate.times {
                    1 => unit.to_owned(),
                    times => format!("{times} {unit}s"),
                };
                (format!("{} per {window}", rate.requests), limit.algorithm().to_string())
            }
        };
        let named = (!rule.name.is_empty()).then(|| format!("name {}", rule.name));
        let replaces =
            (!rule.replaces.is_empty()).then(|| format!("replaces {}", rule.replaces.join(", ")));
        let shadow = rule.shadow.then(|| "shadow mode".to_owned());
        let quota = rule.quota.then(|| "quota mode".to_owned());
        let notes: Vec<String> = [named, replaces, shadow, quota].into_iter().flatten().collect();
        let (domain, descriptor) = (domain.to_owned(), rule.label.clone());
        Self { domain, descriptor, limit, algorithm, notes: notes.join("; ") }
    }
}
