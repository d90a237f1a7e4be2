//! Servers that start at the same time on one database.

use std::{thread, time::Duration};

use headgate_testkit::wait_until;

use crate::harness::{Server, http};

const SERVERS: usize = 6;

#[test]
fn servers_can_start_at_once_on_one_sqlite_file() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("shared.db").display());
        let starting: Vec<_> = (0..SERVERS)
            .map(|_| {
                let url = url.clone();
                thread::spawn(move || {
                    Server::start_with_log(&[("HEADGATE__DATABASE__URL", url.as_str())])
                })
            })
            .collect();
        for server in starting.into_iter().map(|server| server.join().unwrap()) {
            let is_ready = || http(&server, "GET /readyz", &[], "").contains(r#""status":"ready""#);
            assert!(wait_until(Duration::from_secs(120), is_ready), "{}", server.log());
            let log = server.log();
            assert!(!log.contains("locked") && !log.contains("failed to load"), "{log}");
        }
    }
}
