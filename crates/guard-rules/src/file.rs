//! Rules from a file.

use std::{
    fs::File,
    io::{self, Read as _},
    path::PathBuf,
    time::Duration,
};

use headgate_rules_file::{Drafts, FileError, Source};
use tracing::{info, warn};

use crate::{RuleSet, RulesError};

/// A file of rules, in the format of `headgate rules apply`.
///
/// ```no_run
/// use std::time::Duration;
///
/// use headgate_guard_rules::{RuleSet, RulesFile};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = RuleSet::in_memory();
/// let file = RulesFile::load("rules.yaml", &rules)?;
/// tokio::spawn(file.watch(Duration::from_secs(2)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct RulesFile {
    path: PathBuf,
    rules: RuleSet,
    /// The text that was read last, whether or not it is in force.
    text: String,
    /// The reason that the file was not read, to log it once.
    unreadable: Option<String>,
}

/// Maximum size of a file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

impl RulesFile {
    /// Puts the rules of a file in force.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with the file.
    pub fn load(path: impl Into<PathBuf>, rules: &RuleSet) -> Result<Self, RulesError> {
        let path = path.into();
        let text = read(&path).map_err(|cause| FileError::Unreadable {
            source_name: path.display().to_string(),
            cause,
        })?;
        let file = Self { path, rules: rules.clone(), text, unreadable: None };
        file.apply()?;
        Ok(file)
    }

    /// Reads the file again every `interval`, until the future is dropped. Rules that are valid are
    /// in force at once; otherwise the previous ones stay, and the log says why.
    pub async fn watch(mut self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            // Reading and compiling would delay requests.
            let Ok(file) = tokio::task::spawn_blocking(move || self.reloaded()).await else {
                // The runtime is shutting down.
                return;
            };
            self = file;
        }
    }

    fn reloaded(mut self) -> Self {
        match read(&self.path) {
            Ok(text) if text == self.text => self.unreadable = None,
            Ok(text) => {
                self.text = text;
                self.unreadable = None;
                self.replace();
            }
            Err(error) => {
                let reason = error.to_string();
                if self.unreadable.as_ref() != Some(&reason) {
                    let path = self.path.display();
                    warn!(%path, error = reason, "cannot read rules; keeping the previous ones");
                }
                self.unreadable = Some(reason);
            }
        }
        self
    }

    fn replace(&self) {
        let path = self.path.display();
        match self.apply() {
            Ok(()) => info!(%path, rules = self.rules.len(), "loaded rules"),
            Err(error) => warn!(%path, %error, "invalid rules; keeping the previous ones"),
        }
    }

    fn apply(&self) -> Result<(), RulesError> {
        let drafts = Drafts::parse(&Source::File(self.path.clone()), &self.text)?;
        self.rules.replace_specs(drafts.validate()?)
    }
}

fn read(path: &PathBuf) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(text)
}
