use std::{fs, path::Path, process::Command, sync::mpsc};

use prometheus::Registry;
use tokio::sync::mpsc::unbounded_channel;

use super::*;

#[tokio::test]
async fn a_file_that_does_not_change_is_not_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let write = |domain: &str, requests: u32| {
        let text = format!(
            "domain: {domain}\ndescriptors:\n  - key: a\n    rate_limit:\n      \
             unit: minute\n      requests_per_unit: {requests}\n"
        );
        fs::write(folder.path().join(format!("{domain}.yaml")), text).unwrap();
    };
    write("one", 1);
    write("two", 1);
    let source = FileSource::Directory(folder.path().to_owned());
    let metrics = EnvoyMetrics::new(&Registry::new()).unwrap();
    let (catalog, reloader) = FileReloader::start(source, Duration::ZERO, metrics).unwrap();
    let in_force = || Arc::clone(catalog.load().as_ref().unwrap());
    let (before, mut reads) = (in_force(), FileReads::default());

    write("two", 2);
    assert!(reloader.files().reload_once(&mut reads, load).await);
    let after = in_force();
    assert!(Arc::ptr_eq(&before["one"], &after["one"]));
    assert!(!Arc::ptr_eq(&before["two"], &after["two"]));

    fs::remove_file(folder.path().join("one.yaml")).unwrap();
    assert!(reloader.files().reload_once(&mut reads, load).await);
    assert_eq!(in_force().keys().collect::<Vec<_>>(), ["two"]);
}

#[tokio::test]
async fn a_prepared_source_is_in_force_once_it_is_committed() {
    let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let write = |folder: &tempfile::TempDir, domain: &str| {
        let text = format!("domain: {domain}\ndescriptors: []\n");
        fs::write(folder.path().join("domain.yaml"), text).unwrap();
    };
    write(&first, "one");
    write(&second, "two");
    let source = FileSource::Directory(first.path().to_owned());
    let metrics = EnvoyMetrics::new(&Registry::new()).unwrap();
    let (catalog, reloader) =
        FileReloader::start(source, Duration::from_secs(60), metrics).unwrap();
    let in_force = || catalog.load().as_ref().unwrap().keys().cloned().collect::<Vec<_>>();
    let other = |folder: &tempfile::TempDir| EnvoyConfig {
        config_dir: Some(folder.path().to_owned()),
        ..EnvoyConfig::default()
    };

    let prepared = reloader.files().prepare(&other(&second)).unwrap();
    assert_eq!(in_force(), ["one"]);
    // A read that began before the commit must not undo it.
    let stale = load(&reloader.files().state(), true);
    prepared.commit();
    assert_eq!(in_force(), ["two"]);
    reloader.files().apply(stale, 0);
    assert_eq!(in_force(), ["two"]);

    fs::write(second.path().join("bad.yaml"), "domain: [").unwrap();
    assert!(reloader.files().prepare(&other(&second)).is_err());
    assert_eq!(in_force(), ["two"]);
}

/// Waits for a change by a task that runs in the background.
async fn until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    time::timeout(Duration::from_secs(120), waiting).await.expect("it happens");
}

fn write_domain(folder: &Path, domain: &str) {
    let text = format!("domain: {domain}\ndescriptors: []\n");
    fs::write(folder.join("domain.yaml"), text).unwrap();
}

fn start_in(folder: &Path) -> (Arc<EnvoyCatalog>, FileReloader) {
    let source = FileSource::Directory(folder.to_owned());
    let metrics = EnvoyMetrics::new(&Registry::new()).unwrap();
    FileReloader::start(source, Duration::from_millis(5), metrics).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_is_reported_and_files_are_still_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    write_domain(folder.path(), "one");
    let (catalog, reloader) = start_in(folder.path());
    let has = |domain: &str| catalog.load().as_ref().unwrap().contains_key(domain);
    let (held, released) = mpsc::channel::<()>();
    let (hangs, mut is_hanging) = unbounded_channel();
    let first = Arc::new(Mutex::new(Some(released)));
    let running = tokio::spawn(reloader.run_by(move |state, is_refusing| {
        let first = first.lock().unwrap().take();
        if let Some(released) = first {
            hangs.send(()).unwrap();
            let _ = released.recv();
        }
        load(state, is_refusing)
    }));

    is_hanging.recv().await.unwrap();
    // The clock stands still while a thread reads.
    for _ in 0..20 {
        if !catalog.is_refusing() {
            time::advance(Duration::from_secs(1)).await;
        }
    }
    let reason = catalog.degraded_reason().expect("it is reported");
    assert!(reason.contains("has not returned for 10 seconds"), "{reason}");
    assert!(reason.contains(&folder.path().display().to_string()), "{reason}");
    assert!(has("one"), "the previous domains stay");

    time::resume();
    write_domain(folder.path(), "two");
    until(|| has("two") && !catalog.is_refusing()).await;
    drop(held);
    write_domain(folder.path(), "three");
    until(|| has("three") && !catalog.is_refusing()).await;
    running.abort();
}

#[tokio::test]
async fn a_pipe_among_the_files_is_refused_and_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    write_domain(folder.path(), "one");
    let (catalog, reloader) = start_in(folder.path());
    let running = tokio::spawn(reloader.run());
    let pipe = folder.path().join("z.yaml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    until(|| catalog.is_refusing()).await;
    let reason = catalog.degraded_reason().unwrap();
    assert!(reason.contains("z.yaml") && reason.contains("not a regular file"), "{reason}");
    write_domain(folder.path(), "two");
    fs::remove_file(pipe).unwrap();
    until(|| catalog.load().as_ref().unwrap().contains_key("two")).await;
    assert!(!catalog.is_refusing());
    running.abort();
}

#[tokio::test]
async fn invalid_files_are_reported_again_after_a_read_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    write_domain(folder.path(), "one");
    let (catalog, reloader) = start_in(folder.path());
    let mut reads = FileReads::default();
    fs::write(folder.path().join("bad.yaml"), "domain: [").unwrap();
    assert!(reloader.files().reload_once(&mut reads, load).await);
    let invalid = catalog.degraded_reason().unwrap();
    let unreadable = |_: &State, _| {
        let cause = io::Error::other("away");
        Reloaded::Unreadable(ConfigError::Unreadable { path: "a".into(), cause })
    };
    assert!(reloader.files().reload_once(&mut reads, unreadable).await);
    assert!(catalog.degraded_reason().unwrap().contains("away"));
    assert!(reloader.files().reload_once(&mut reads, load).await);
    assert_eq!(catalog.degraded_reason().unwrap(), invalid);
}
