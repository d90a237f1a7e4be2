//! Over REST: CPU microseconds of the server, and of Redis if it counts there.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

use headgate_testkit::Redis;

use super::{Figures, RESERVED, SPENT, Subjects, Work, now};
use crate::{
    machine,
    options::Options,
    random::Random,
    redis::cores,
    server::{
        candidate::{Candidate, Place, Running, Surface},
        http::Connection,
    },
};

/// Connections, each with one request in flight.
const CONNECTIONS: usize = 8;

const SUBJECTS: usize = 100_000;

/// A server, and the Redis that it counts in.
struct Bench {
    server: Running,
    redis: Option<Redis>,
}

pub(super) fn in_memory(options: Options) -> Result<Vec<(String, Figures)>, String> {
    Bench::start(None).map(|bench| bench.measure(options))
}

pub(super) fn on_redis(options: Options) -> Result<Vec<(String, Figures)>, String> {
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    Bench::start(Some(redis)).map(|bench| bench.measure(options))
}

impl Bench {
    fn start(redis: Option<Redis>) -> Result<Self, String> {
        let url = redis.as_ref().map(Redis::url);
        let place = match &url {
            Some(url) => Place::OwnCoreWith { redis: url },
            None => Place::OwnCore,
        };
        let server = Candidate::Headgate(Surface::Rest).start(place);
        let server = server.ok_or("headgate does not start")?;
        if let Some(redis) = &redis {
            cores::separate(redis.pid());
        }
        Ok(Self { server, redis })
    }

    fn measure(&self, options: Options) -> Vec<(String, Figures)> {
        let time = Duration::from_secs(if options.is_quick() { 1 } else { 3 });
        let rows = Subjects::ALL.map(|subjects| {
            let of = |work: Work| self.micros(work, subjects, time);
            // Connections and subjects are known when timing starts.
            of(Work::ReserveAndSettle);
            (format!("REST, {}", subjects.name()), Figures::measure(options, of))
        });
        cores::share();
        rows.into()
    }

    /// CPU microseconds for each, of clients in a closed loop.
    fn micros(&self, work: Work, subjects: Subjects, time: Duration) -> f64 {
        let done = AtomicUsize::new(0);
        let before = self.cpu_seconds();
        let until = now() + time;
        thread::scope(|threads| {
            for seed in 0..CONNECTIONS {
                let (done, port) = (&done, self.server.port);
                threads.spawn(move || {
                    let mut connection = Connection::open(port).expect("a connection");
                    let mut random = Random::new(seed as u64);
                    while now() < until {
                        let subject = match subjects {
                            Subjects::Distinct => random.below(SUBJECTS),
                            Subjects::One => 0,
                        };
                        ask(&mut connection, work, &format!("{work:?}-{subject}"));
                        done.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        (self.cpu_seconds() - before) * 1e6 / done.into_inner() as f64
    }

    fn cpu_seconds(&self) -> f64 {
        let redis = self.redis.as_ref().map_or(0.0, |redis| machine::cpu_seconds(redis.pid()));
        self.server.cpu_seconds() + redis
    }
}

/// Does `work` once with a subject.
fn ask(connection: &mut Connection, work: Work, subject: &str) {
    let check = format!(r#"{{"scope":"user","identifier":"{subject}","cost":{RESERVED}}}"#);
    match work {
        Work::Check => {
            let decision = post(connection, "check", &check);
            assert!(decision.contains(r#""allowed":true"#), "{decision}");
        }
        Work::ReserveAndSettle => {
            let body = format!(r#"{{"checks":[{check}],"ttl_seconds":30}}"#);
            let reservation = post(connection, "reservations", &body);
            let id = reservation.split_once(r#""id":""#).and_then(|(_, id)| id.split_once('"'));
            let (id, _) = id.unwrap_or_else(|| panic!("no reservation: {reservation}"));
            let path = format!("reservations/{id}/settle");
            let settled = post(connection, &path, &format!(r#"{{"cost":{SPENT}}}"#));
            assert!(settled.contains(&format!(r#""settled":{SPENT}"#)), "{settled}");
        }
    }
}

fn post(connection: &mut Connection, path: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "POST /api/v1/ratelimit/{path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let answer = connection.ask(request.as_bytes()).expect("an answer");
    String::from_utf8(answer).expect("a text")
}
