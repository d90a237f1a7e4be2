use std::{
    fs::File,
    process::Command,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use headgate::{SystemClock, Timestamp};
use headgate_ratelimit::{AuditFilter, Listed, Page};
use prometheus::Registry;
use tokio::time;

use super::*;

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(60);

/// A part with a file, once it is in use.
struct FilePart {
    file: PathBuf,
    is_used: AtomicBool,
}

#[async_trait]
impl Live for FilePart {
    fn keys(&self) -> &[&'static str] {
        &[]
    }

    fn files(&self, _: &Config) -> Vec<PathBuf> {
        let is_used = self.is_used.load(Relaxed);
        is_used.then(|| self.file.clone()).into_iter().collect()
    }

    async fn prepare(&self, _: &Config) -> Result<Commit, ConfigError> {
        Ok(commit(|| ()))
    }
}

/// An audit log that is not used: a dry run records nothing.
struct NoAuditLog;

#[async_trait]
impl AuditLog for NoAuditLog {
    async fn record(&self, _: &AuditEntry) -> Result<i64, RepositoryError> {
        unreachable!("nothing is recorded")
    }

    async fn settle(&self, _: i64, _: Option<&str>) -> Result<(), RepositoryError> {
        unreachable!("nothing is recorded")
    }

    async fn prune(&self, _: Timestamp) -> Result<u64, RepositoryError> {
        unreachable!("nothing is recorded")
    }

    async fn entries(
        &self,
        _: &AuditFilter,
        _: Page,
    ) -> Result<Listed<AuditEntry>, RepositoryError> {
        unreachable!("nothing is recorded")
    }
}

fn reloader(part: Arc<FilePart>) -> Reloader {
    let config = Config::load(None, []).unwrap();
    let same = config.clone();
    let metrics = ReloadMetrics::new(&Registry::new()).unwrap();
    let clock = Arc::new(SystemClock::new());
    let load: Arc<Load> = Arc::new(move || Ok(same.clone()));
    Reloader::new(config, load, vec![part], Arc::new(NoAuditLog), clock, metrics)
}

#[tokio::test]
async fn a_file_on_a_disk_that_hangs_does_not_stop_the_worker() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
    let part = Arc::new(FilePart { file: file.clone(), is_used: AtomicBool::new(false) });
    let reloader = reloader(Arc::clone(&part));
    part.is_used.store(true, Relaxed);

    let (opened, is_opened) = mpsc::channel();
    let (served, is_served) = mpsc::channel();
    let disk = thread::spawn(move || {
        // Waits for the reader, who then waits for the end of the file.
        let file = File::options().write(true).open(file).unwrap();
        opened.send(()).unwrap();
        let is_served = is_served.recv_timeout(LIMIT).is_ok();
        drop(file);
        is_served
    });
    let serving = async {
        while is_opened.try_recv().is_err() {
            time::sleep(Duration::from_millis(5)).await;
        }
        // Without a receiver, it is too late.
        let _ = served.send(());
    };
    let (outcome, ()) = tokio::join!(reloader.dry_run(), serving);
    assert!(outcome.unwrap().applied.is_empty());
    assert!(disk.join().unwrap(), "the worker was blocked");
}
