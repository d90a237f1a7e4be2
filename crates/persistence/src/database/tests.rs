//! Who waits for whom.

use headgate_testkit::{Postgres, require};
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;

const CONNECTIONS: u32 = 4;

/// Time within which everything happens, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

async fn migrated(url: &str) -> Database {
    let config = DatabaseConfig::from_url(url).unwrap().max_connections(CONNECTIONS);
    // Also the time that a read waits in vain.
    let database = Database::open(&config.connect_timeout(Duration::from_secs(1)));
    until(async || database.migrate().await).await;
    database
}

/// Repeats a call until it succeeds.
async fn until<T, E: fmt::Debug>(call: impl AsyncFn() -> Result<T, E>) -> T {
    let started = Instant::now();
    loop {
        match call().await {
            Ok(done) => return done,
            Err(error) => assert!(started.elapsed() < LIMIT, "{error:?}"),
        }
    }
}

/// Begins reads of requests until there is no connection for another one.
async fn exhausted(database: &Database) -> Vec<Session> {
    let mut reads = vec![until(async || database.reading().await).await];
    while let Ok(read) = database.reading().await {
        reads.push(read);
    }
    reads
}

async fn reads_of_requests_leave_connections_to_the_server(database: &Database) {
    until(async || database.writing().await?.commit().await).await;
    let reads = exhausted(database).await;
    assert_eq!(database.write_error(), None, "a read that waited in vain is no failed write");
    assert!(reads.len() <= CONNECTIONS as usize / 2, "{} reads at a time", reads.len());
    let write = until(async || database.writing().await).await;
    let own_read = until(async || database.reading_for_server().await).await;
    until(async || database.reading().await.err().ok_or("another read")).await;
    drop((reads, write, own_read));
    until(async || database.reading().await).await;
}

#[tokio::test]
async fn reads_of_requests_leave_connections_to_the_server_on_sqlite() {
    let folder = TempDir::new().unwrap();
    let url = format!("sqlite://{}/headgate.db", folder.path().display());
    reads_of_requests_leave_connections_to_the_server(&migrated(&url).await).await;
}

#[tokio::test]
async fn reads_of_requests_leave_connections_to_the_server_on_postgres() {
    let home = require!(Postgres::shared());
    reads_of_requests_leave_connections_to_the_server(&migrated(home.url()).await).await;
}

#[tokio::test]
async fn a_single_connection_is_shared() {
    let database = Database::open(
        &DatabaseConfig::from_url("sqlite::memory:").unwrap().max_connections(CONNECTIONS),
    );
    until(async || database.migrate().await).await;
    until(async || database.reading().await).await.commit().await.unwrap();
    until(async || database.writing().await).await.commit().await.unwrap();
}
