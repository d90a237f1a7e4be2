//! Redis, PostgreSQL and the server fail in turn while 32 clients increment one quota, or reserve
//! units of it and settle them.

mod client;
mod reserving;
mod tally;

use std::{thread, time::Duration};

use headgate_testkit::{Postgres, Redis, require, wait_until};
use serde_json::{Value, json};

use self::{
    client::{Answer, Target, client, send},
    tally::{Counts, Tally},
};
use crate::harness::Server;

const CLIENTS: usize = 32;

/// Units that are acknowledged between two failures.
const BETWEEN: u64 = 300;

/// Number of times that each component fails.
const ROUNDS: usize = 3;

/// The servers of a test, each of which can be killed and replaced.
struct Stage {
    postgres: Postgres,
    redis: Redis,
    server: Server,
    target: Target,
    tally: Tally,
    /// Id of the quota that all clients increment.
    quota: String,
}

impl Stage {
    /// Starts everything, and creates the quota.
    fn set(postgres: Postgres, redis: Redis) -> Self {
        let server = Self::serve(&postgres, &redis);
        let target = Target::new(server.url());
        let (tally, quota) = (Tally::default(), String::new());
        let mut stage = Self { postgres, redis, server, target, tally, quota };
        let made = stage.json("POST /api/v1/quotas", &policy(1_000_000));
        made["id"].as_str().unwrap().clone_into(&mut stage.quota);
        stage
    }

    /// Starts the clients.
    fn start(&self, client: fn(usize, &str, &Target, &Tally)) -> Vec<thread::JoinHandle<()>> {
        let start = |number| {
            let (id, target, tally) = (self.quota.clone(), self.target.clone(), self.tally.clone());
            thread::spawn(move || client(number, &id, &target, &tally))
        };
        (0..CLIENTS).map(start).collect()
    }

    /// Stops the clients.
    fn stop(&self, clients: Vec<thread::JoinHandle<()>>) {
        self.tally.note(|counts| counts.stopped = true);
        for client in clients {
            client.join().unwrap();
        }
    }

    fn serve(postgres: &Postgres, redis: &Redis) -> Server {
        let (database, store) = (postgres.url(), redis.url());
        Server::start_with_log(&[
            ("HEADGATE__AUTH__MODE", "off"),
            ("HEADGATE__DATABASE__URL", &database),
            ("HEADGATE__REDIS__URL", &store),
            ("HEADGATE__QUOTA__RECONCILE_INTERVAL_SECONDS", "1"),
        ])
    }

    fn kill_server(&mut self) {
        self.server.stop("-KILL");
        let acknowledged = self.tally.counts().acknowledged;
        self.server = Self::serve(&self.postgres, &self.redis);
        self.target.move_to(self.server.url());
        let shown = self.shown();
        assert!(shown >= acknowledged, "usage is {shown}, but {acknowledged} were acknowledged");
    }

    fn fail_components_in_turn(&mut self) {
        self.wait_for_acknowledged(BETWEEN);
        self.redis.cli(&["FLUSHALL"]);
        self.wait_for_acknowledged(BETWEEN);
        self.redis.kill();
        self.wait_for_acknowledged(BETWEEN);
        self.redis.restart();
        self.wait_for_acknowledged(BETWEEN);
        self.kill_server();
        self.wait_for_acknowledged(BETWEEN);
        self.postgres.stop();
        self.postgres.start_again();
        self.wait_for_acknowledged(BETWEEN);
    }

    /// Waits until `units` more are acknowledged.
    fn wait_for_acknowledged(&self, units: u64) {
        let goal = self.tally.counts().acknowledged + units;
        self.wait(|counts| counts.acknowledged >= goal);
    }

    /// Waits until `times` more requests are denied.
    fn wait_for_denied(&self, times: u64) {
        let goal = self.tally.counts().refused + times;
        self.wait(|counts| counts.refused >= goal);
    }

    fn wait(&self, met: impl Fn(&Counts) -> bool) {
        let came = self.tally.wait(met);
        assert!(came, "{}\n{}", self.tally.counts(), self.server.log());
    }

    /// Sends a request, and repeats it while the server cannot reach the database: 503 says that
    /// nothing was changed.
    fn json(&self, line: &str, body: &Value) -> Value {
        let mut answer = Answer::NotSent;
        wait_until(Duration::from_secs(300), || {
            answer = send(&self.target.get(), line, &body.to_string());
            !matches!(answer, Answer::Given(503, _))
        });
        match answer {
            Answer::Given(status, body) if status < 300 => serde_json::from_str(&body).unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Usage according to the server.
    fn shown(&self) -> u64 {
        let line = format!("GET /api/v1/quotas/{}/usage", self.quota);
        self.json(&line, &json!({}))["used"].as_u64().unwrap()
    }

    fn ledger(&self, sql: &str) -> u64 {
        self.postgres.psql(sql).parse().unwrap()
    }
}

fn policy(limit: u64) -> Value {
    json!({
        "name": "chaos", "subject_type": "tenant", "subject_id": "t1", "limit": limit,
        "period": "monthly",
    })
}

#[test]
fn no_acknowledged_unit_is_lost_and_the_limit_holds() {
    let (postgres, redis) = (require!(Postgres::start()), require!(Redis::start()));
    let mut stage = Stage::set(postgres, redis);
    let id = stage.quota.clone();
    let clients = stage.start(client);

    for _ in 0..ROUNDS {
        stage.fail_components_in_turn();
    }
    // Lower the limit, and let components fail while usage reaches it.
    let limit = stage.ledger("SELECT used FROM quota.quota_usages") + 4 * BETWEEN;
    stage.json(&format!("PUT /api/v1/quotas/{id}"), &policy(limit));
    stage.redis.cli(&["FLUSHALL"]);
    stage.kill_server();
    stage.wait_for_denied(2 * CLIENTS as u64);
    stage.redis.cli(&["FLUSHALL"]);
    stage.kill_server();
    stage.wait_for_denied(2 * CLIENTS as u64);
    stage.stop(clients);

    let used = stage.ledger("SELECT used FROM quota.quota_usages");
    let charged = stage.ledger("SELECT sum(amount) FROM quota.quota_increments");
    let counts = stage.tally.counts();
    let (acknowledged, unanswered) = (counts.acknowledged, counts.unanswered);
    let print = format!("ledger {used}, by request id {charged}, limit {limit}, {counts}");
    println!("{print}");
    assert_eq!(used, charged, "{print}");
    assert!(acknowledged <= used, "something was lost: {print}");
    assert!(used <= acknowledged + unanswered, "something was charged twice: {print}");
    assert!(used <= limit, "above the limit: {print}");
    // The remaining units are fewer than the largest request.
    assert!(limit - used < client::LARGEST, "{print}");
    assert_eq!(stage.shown(), used, "{print}");
}

#[test]
fn no_settled_unit_is_lost_and_the_limit_holds_with_reservations() {
    let (postgres, redis) = (require!(Postgres::start()), require!(Redis::start()));
    let mut stage = Stage::set(postgres, redis);
    let id = stage.quota.clone();
    let clients = stage.start(reserving::client);

    stage.fail_components_in_turn();
    // Lower the limit, and let components fail while usage reaches it. Used units include reserved
    // ones in the ledger.
    let limit = stage.ledger("SELECT used FROM quota.quota_usages") + 3 * BETWEEN;
    stage.json(&format!("PUT /api/v1/quotas/{id}"), &policy(limit));
    stage.kill_server();
    stage.wait_for_denied(2 * CLIENTS as u64);
    stage.redis.cli(&["FLUSHALL"]);
    stage.kill_server();
    stage.wait_for_denied(2 * CLIENTS as u64);
    assert!(stage.ledger("SELECT used FROM quota.quota_usages") <= limit);
    stage.stop(clients);

    // What was abandoned comes back when its TTL is over.
    let nothing_reserved = || stage.ledger("SELECT reserved FROM quota.quota_usages") == 0;
    assert!(wait_until(Duration::from_secs(300), nothing_reserved), "{}", stage.server.log());
    let used = stage.ledger("SELECT used FROM quota.quota_usages");
    let charged = stage.ledger("SELECT sum(charged) FROM quota.quota_reservations");
    let held = stage.ledger("SELECT sum(held) FROM quota.quota_reservations");
    let expired =
        stage.ledger("SELECT count(*) FROM quota.quota_reservations WHERE status = 'expired'");
    let counts = stage.tally.counts();
    let (acknowledged, unanswered) = (counts.acknowledged, counts.unanswered);
    let print = format!(
        "ledger {used}, by reservation {charged}, limit {limit}, {expired} expired, {counts}"
    );
    println!("{print}");
    assert_eq!((used, held), (charged, 0), "{print}");
    assert!(acknowledged <= used, "something was lost: {print}");
    assert!(used <= acknowledged + unanswered, "something was charged twice: {print}");
    assert!(used <= limit, "above the limit: {print}");
    assert!(expired > 0, "{print}");
    assert_eq!(stage.shown(), used, "{print}");
}
