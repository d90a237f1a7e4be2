//! A client that reserves units and settles them, and counts what was acknowledged.

use serde_json::{Value, json};

use super::{
    client::{Answer, LARGEST, Target, send},
    tally::Tally,
};

/// A client that runs until it is stopped.
struct ReservingClient<'a> {
    /// Path of the reservations.
    path: String,
    target: &'a Target,
    tally: &'a Tally,
    /// True if it does not repeat requests without response, and abandons some reservations.
    gives_up: bool,
}

/// Reserves and settles until stopped. Every fourth client gives up on requests without response,
/// and abandons some reservations, which expire soon; the others repeat requests until they are
/// answered.
pub(super) fn client(number: usize, id: &str, target: &Target, tally: &Tally) {
    let path = format!("POST /api/v1/quotas/{id}/reservations");
    let gives_up = number.is_multiple_of(4);
    let client = ReservingClient { path, target, tally, gives_up };
    for turn in 0_u64.. {
        if tally.counts().stopped {
            return;
        }
        let amount = 1 + turn % LARGEST;
        let Some(id) = client.reserve(amount, &format!("{number}-{turn}")) else { continue };
        if !gives_up || turn % 5 != 4 {
            // At most one more than is reserved.
            client.settle(&id, turn % (amount + 2));
        }
    }
}

// === impl ReservingClient ===

impl ReservingClient<'_> {
    /// Reserves; returns the id.
    fn reserve(&self, amount: u64, request_id: &str) -> Option<String> {
        let ttl = if self.gives_up { 2 } else { 600 };
        let body = json!({"amount": amount, "ttl_seconds": ttl, "request_id": request_id});
        loop {
            match send(&self.target.get(), &self.path, &body.to_string()) {
                Answer::Given(201, body) => {
                    return Some(field(&body, "id").as_str().unwrap().to_owned());
                }
                Answer::Given(429, _) => {
                    self.tally.note(|counts| counts.refused += 1);
                    return None;
                }
                Answer::Given(502 | 503, _) | Answer::NotSent | Answer::Lost => {}
                Answer::Given(status, body) => panic!("{status}: {body}"),
            }
            if self.gives_up {
                return None;
            }
            self.tally.note(|counts| counts.repeated += 1);
            self.target.pause();
        }
    }

    fn settle(&self, id: &str, amount: u64) {
        let line = format!("{}/{id}/settle", self.path);
        let body = json!({ "amount": amount }).to_string();
        loop {
            let unsure = match send(&self.target.get(), &line, &body) {
                Answer::Given(200, body) => {
                    let settled = field(&body, "settled").as_u64().unwrap();
                    self.tally.note(|counts| counts.acknowledged += settled);
                    return;
                }
                Answer::Given(409, body) if self.gives_up => {
                    assert!(body.contains("SYS_QUOTA_RESERVATION_EXPIRED"), "{body}");
                    return;
                }
                Answer::Given(502 | 503, body) => body.contains("SYS_QUOTA_UNCONFIRMED"),
                Answer::Given(status, body) => panic!("{status}: {body}"),
                Answer::NotSent => false,
                Answer::Lost => true,
            };
            if self.gives_up {
                self.tally.note(|counts| counts.unanswered += if unsure { amount } else { 0 });
                return;
            }
            self.tally.note(|counts| counts.repeated += 1);
            self.target.pause();
        }
    }
}

fn field(body: &str, name: &str) -> Value {
    serde_json::from_str::<Value>(body).unwrap()[name].clone()
}
