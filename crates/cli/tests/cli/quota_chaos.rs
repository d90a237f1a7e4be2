//! Everything goes away while 32 clients use one quota, and nothing that was acknowledged is lost.

mod client;
mod tally;

use std::thread;

use headgate_testkit::{Postgres, Redis, require};
use serde_json::{Value, json};

use self::{
    client::{Answer, Target, client, send},
    tally::{Counts, Tally},
};
use crate::harness::Server;

const CLIENTS: usize = 32;

/// What is acknowledged before the next thing goes away.
const BETWEEN: u64 = 300;

/// How often everything goes away.
const ROUNDS: usize = 3;

/// The servers of a test, of which one can be replaced by another at any time.
struct Stage {
    postgres: Postgres,
    redis: Redis,
    server: Server,
    target: Target,
    tally: Tally,
    /// The id of the quota that everybody uses.
    quota: String,
}

impl Stage {
    fn serve(postgres: &Postgres, redis: &Redis) -> Server {
        let (database, store) = (postgres.url(), redis.url());
        Server::start_with_log(&[
            ("HEADGATE__AUTH__MODE", "off"),
            ("HEADGATE__DATABASE__URL", &database),
            ("HEADGATE__DATABASE__CONNECT_TIMEOUT_SECONDS", "1"),
            ("HEADGATE__REDIS__URL", &store),
            ("HEADGATE__QUOTA__RECONCILE_INTERVAL_SECONDS", "1"),
        ])
    }

    fn kill_the_server(&mut self) {
        self.server.stop("-KILL");
        let acknowledged = self.tally.counts().acknowledged;
        self.server = Self::serve(&self.postgres, &self.redis);
        self.target.move_to(self.server.url());
        let shown = self.shown();
        assert!(shown >= acknowledged, "{shown} is shown of {acknowledged} acknowledged");
    }

    fn lose_everything_in_turn(&mut self) {
        self.go_on(BETWEEN);
        self.redis.cli(&["FLUSHALL"]);
        self.go_on(BETWEEN);
        self.redis.kill();
        self.go_on(BETWEEN);
        self.redis.restart();
        self.go_on(BETWEEN);
        self.kill_the_server();
        self.go_on(BETWEEN);
        self.postgres.stop();
        self.postgres.start_again();
        self.go_on(BETWEEN);
    }

    /// Waits until `units` more were acknowledged.
    fn go_on(&self, units: u64) {
        let goal = self.tally.counts().acknowledged + units;
        self.wait(|counts| counts.acknowledged >= goal);
    }

    /// Waits until so many more requests were refused.
    fn be_refused(&self, times: u64) {
        let goal = self.tally.counts().refused + times;
        self.wait(|counts| counts.refused >= goal);
    }

    fn wait(&self, met: impl Fn(&Counts) -> bool) {
        let came = self.tally.wait(met);
        assert!(came, "{}\n{}", self.tally.counts(), self.server.log());
    }

    fn json(&self, line: &str, body: &Value) -> Value {
        match send(&self.target.get(), line, &body.to_string()) {
            Answer::Given(status, body) if status < 300 => serde_json::from_str(&body).unwrap(),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// Usage as the server shows it.
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
    let server = Stage::serve(&postgres, &redis);
    let target = Target::new(server.url());
    let (tally, quota) = (Tally::default(), String::new());
    let mut stage = Stage { postgres, redis, server, target, tally, quota };
    let made = stage.json("POST /api/v1/quotas", &policy(1_000_000));
    let id = made["id"].as_str().unwrap().to_owned();
    stage.quota.clone_from(&id);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (id, target, tally) = (id.clone(), stage.target.clone(), stage.tally.clone());
            thread::spawn(move || client(number, &id, &target, &tally))
        })
        .collect();

    for _ in 0..ROUNDS {
        stage.lose_everything_in_turn();
    }
    // Now there is an end to it, and again everything goes away on the way there.
    let limit = stage.ledger("SELECT used FROM quota.quota_usages") + 4 * BETWEEN;
    stage.json(&format!("PUT /api/v1/quotas/{id}"), &policy(limit));
    stage.redis.cli(&["FLUSHALL"]);
    stage.kill_the_server();
    stage.be_refused(2 * CLIENTS as u64);
    stage.redis.cli(&["FLUSHALL"]);
    stage.kill_the_server();
    stage.be_refused(2 * CLIENTS as u64);
    stage.tally.note(|counts| counts.stopped = true);
    for client in clients {
        client.join().unwrap();
    }

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
    // What is left is less than anybody asks for.
    assert!(limit - used < client::LARGEST, "{print}");
    assert_eq!(stage.shown(), used, "{print}");
}
