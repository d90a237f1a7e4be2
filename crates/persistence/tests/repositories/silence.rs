//! PostgreSQL goes silent: its machine is gone, and connections are not closed.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use headgate_persistence::{Database, DatabaseConfig};
use headgate_ratelimit::RateLimitRuleRepository;
use headgate_testkit::{Postgres, require};
use sqlx::{Connection, PgConnection};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
    time::timeout,
};

use crate::support::{TIMEOUT, create, run, spec};

/// A proxy to the server whose connections can go dead; later ones work.
struct Wire {
    port: u16,
    dead: Arc<std::sync::Mutex<Arc<AtomicBool>>>,
}

// === impl Wire ===

impl Wire {
    async fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let wire = Self { port, dead: Arc::default() };
        let dead = Arc::clone(&wire.dead);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server_port)).await.unwrap();
                let ((from_client, to_client), (from_server, to_server)) =
                    (client.into_split(), server.into_split());
                let dead = Arc::clone(&dead.lock().unwrap());
                tokio::spawn(carry(from_client, to_server, Arc::clone(&dead)));
                tokio::spawn(carry(from_server, to_client, dead));
            }
        });
        wire
    }

    /// Drops all traffic of existing connections from now on.
    fn cut(&self) {
        std::mem::take(&mut *self.dead.lock().unwrap()).store(true, SeqCst);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, dead: Arc<AtomicBool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if !dead.load(SeqCst) && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    if dead.load(SeqCst) {
        // Not even the end of the connection is forwarded.
        std::future::pending::<()>().await;
    }
}

/// A proxy to a server, and a database with one connection through it.
async fn wired(server: &Postgres) -> (Wire, Database) {
    let wire = Wire::to(server.port()).await;
    let url = server.url().replace(&server.port().to_string(), &wire.port.to_string());
    let config = DatabaseConfig::from_url(&url).unwrap().max_connections(1);
    // Includes the second that it takes to notice a silent connection, and connecting again.
    let database = Database::open(&config.connect_timeout(TIMEOUT));
    database.migrate().await.unwrap();
    (wire, database)
}

#[test]
fn listeners_detect_a_silent_server() {
    let server = require!(Postgres::start());
    run(async {
        let (wire, database) = wired(&server).await;
        let changed = Arc::new(Notify::new());
        let (replica, woken) = (database.clone(), Arc::clone(&changed));
        let listening = tokio::spawn(async move { replica.listen(&woken).await });
        timeout(TIMEOUT, changed.notified()).await.unwrap();
        wire.cut();
        let error = timeout(TIMEOUT, listening).await.expect("not detected").unwrap();
        assert_eq!(error.to_string(), "database unavailable: no response within 6 s");
    });
}

#[test]
fn a_silent_idle_connection_is_replaced() {
    let server = require!(Postgres::start());
    run(async {
        let (wire, database) = wired(&server).await;
        create(&database, spec("u1", 60), 0).await;
        wire.cut();
        assert_eq!(database.load().await.unwrap().1.len(), 1);
    });
}

#[test]
fn a_connection_that_goes_silent_in_use_times_out() {
    let server = require!(Postgres::start());
    run(async {
        let (wire, database) = wired(&server).await;
        let mut console = PgConnection::connect(&server.url()).await.unwrap();
        let mut watcher = PgConnection::connect(&server.url()).await.unwrap();
        let lock = "BEGIN; LOCK TABLE ratelimit.rate_limit_rules";
        sqlx::raw_sql(lock).execute(&mut console).await.unwrap();
        let replica = database.clone();
        let loading = tokio::spawn(async move { replica.load().await });
        // Not with `psql`: it may take longer to start than a statement may wait.
        let waiting = "SELECT pid FROM pg_locks WHERE NOT granted";
        let waits = async {
            while sqlx::raw_sql(waiting).execute(&mut watcher).await.unwrap().rows_affected() == 0 {
            }
        };
        timeout(TIMEOUT, waits).await.expect("it waits for the lock");

        wire.cut();
        sqlx::raw_sql("ROLLBACK").execute(&mut console).await.unwrap();

        let error = loading.await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "database unavailable: no response within 6 s");
        assert!(database.load().await.unwrap().1.is_empty());
    });
}
