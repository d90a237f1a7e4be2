//! Rules from a file.

use std::{
    error::Error,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::Duration,
};

use headgate_config::{FileReads, ReadFailure, open_regular_file};
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
    pub async fn watch(self, interval: Duration) {
        self.watch_by(interval, read).await;
    }

    async fn watch_by(
        mut self,
        interval: Duration,
        read: impl Fn(&Path) -> io::Result<String> + Clone + Send + 'static,
    ) {
        let mut reads = FileReads::default();
        loop {
            tokio::time::sleep(interval).await;
            let (path, read) = (self.path.clone(), read.clone());
            let text = match reads.read(move || read(&path)).await {
                Ok(Ok(text)) => text,
                Ok(Err(error)) => {
                    self.not_read(&error);
                    continue;
                }
                Err(ReadFailure::ShuttingDown) => return,
                Err(failure) => {
                    self.not_read(&failure);
                    continue;
                }
            };
            // Compiling would delay requests.
            let Ok(file) = tokio::task::spawn_blocking(move || self.reloaded(text)).await else {
                // The runtime is shutting down.
                return;
            };
            self = file;
        }
    }

    fn reloaded(mut self, text: String) -> Self {
        self.unreadable = None;
        if text != self.text {
            self.text = text;
            self.replace();
        }
        self
    }

    /// Logs that the file was not read, once for each reason.
    fn not_read(&mut self, reason: &dyn Error) {
        let reason = reason.to_string();
        if self.unreadable.as_ref() != Some(&reason) {
            let path = self.path.display();
            warn!(%path, error = reason, "cannot read rules; keeping the previous ones");
        }
        self.unreadable = Some(reason);
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

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular_file(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        process::Command,
        sync::{Arc, Mutex, mpsc},
    };

    use headgate_testkit::CapturedLog;
    use tokio::{sync::mpsc::unbounded_channel, time};

    use super::*;

    fn write(path: &Path, rules: usize) {
        let rule =
            |number| format!("- {{name: r{number}, limit: 5, per: [path], window_seconds: 60}}\n");
        let text: String = (0..rules).map(rule).collect();
        fs::write(path, text).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_hangs_is_logged_and_rules_are_still_reloaded() {
        let log = CapturedLog::start("warn");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.yaml");
        write(&path, 1);
        let rules = RuleSet::in_memory();
        let file = RulesFile::load(&path, &rules).unwrap();
        let (held, released) = mpsc::channel::<()>();
        let (hangs, mut is_hanging) = unbounded_channel();
        let first = Arc::new(Mutex::new(Some(released)));
        let watch = tokio::spawn(file.watch_by(Duration::from_millis(5), move |path| {
            let first = first.lock().unwrap().take();
            if let Some(released) = first {
                hangs.send(()).unwrap();
                let _ = released.recv();
            }
            read(path)
        }));

        is_hanging.recv().await.unwrap();
        // The clock stands still while a thread reads.
        for _ in 0..11 {
            time::advance(Duration::from_secs(1)).await;
        }
        time::resume();
        write(&path, 2);
        let reloaded = async {
            while rules.len() != 2 {
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        time::timeout(Duration::from_secs(120), reloaded).await.expect("the new rules");
        assert!(log.text().contains("has not returned for 10 seconds"), "{}", log.text());
        drop(held);
        watch.abort();
    }

    #[test]
    fn a_pipe_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.yaml");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = RulesFile::load(&path, &RuleSet::in_memory()).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
}
