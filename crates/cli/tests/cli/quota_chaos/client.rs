//! A client that counts which increments were acknowledged, denied or left unanswered.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use super::tally::Tally;

/// Largest amount of an increment.
pub(super) const LARGEST: u64 = 3;

/// The current address of the server.
#[derive(Clone)]
pub(super) struct Target(Arc<(Mutex<String>, Condvar)>);

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// Status and body of the response.
    Given(u16, String),
    /// The connection failed.
    NotSent,
    /// The request was sent, but there was no response.
    Lost,
}

impl Target {
    pub(super) fn new(url: &str) -> Self {
        Self(Arc::new((Mutex::new(address(url)), Condvar::new())))
    }

    pub(super) fn move_to(&self, url: &str) {
        *self.0.0.lock().unwrap() = address(url);
        self.0.1.notify_all();
    }

    pub(super) fn get(&self) -> String {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until the server moves, for at most 10 ms because it may return at the same address.
    pub(super) fn pause(&self) {
        let (address, moved) = &*self.0;
        drop(moved.wait_timeout(address.lock().unwrap(), Duration::from_millis(10)).unwrap());
    }
}

fn address(url: &str) -> String {
    url.trim_start_matches("http://").to_owned()
}

/// Sends one request on a connection of its own.
pub(super) fn send(address: &str, line: &str, body: &str) -> Answer {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return Answer::NotSent;
    };
    let timeout = Some(Duration::from_secs(60));
    stream.set_read_timeout(timeout).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    if stream.write_all(request.as_bytes()).is_err() {
        return Answer::Lost;
    }
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    match (read, status, answer.split_once("\r\n\r\n")) {
        (Ok(_), Some(status), Some((_, body))) => Answer::Given(status, body.to_owned()),
        _ => Answer::Lost,
    }
}

/// Increments until stopped. Every fourth client gives up on requests without response; the others
/// repeat them under the same id.
pub(super) fn client(number: usize, id: &str, target: &Target, tally: &Tally) {
    let line = format!("POST /api/v1/quotas/{id}/usage/increment");
    let gives_up = number.is_multiple_of(4);
    for turn in 0_u64.. {
        if tally.counts().stopped {
            return;
        }
        let amount = 1 + turn % LARGEST;
        let body = format!(r#"{{"amount":{amount},"request_id":"{number}-{turn}"}}"#);
        loop {
            let unsure = match send(&target.get(), &line, &body) {
                Answer::Given(200, _) => {
                    tally.note(|counts| counts.acknowledged += amount);
                    break;
                }
                Answer::Given(429, _) => {
                    tally.note(|counts| counts.refused += 1);
                    break;
                }
                Answer::Given(502 | 503, body) => body.contains("SYS_QUOTA_UNCONFIRMED"),
                Answer::Given(status, body) => panic!("{status}: {body}"),
                Answer::NotSent => false,
                Answer::Lost => true,
            };
            if gives_up {
                tally.note(|counts| counts.unanswered += if unsure { amount } else { 0 });
                break;
            }
            tally.note(|counts| counts.repeated += 1);
            target.pause();
        }
    }
}
