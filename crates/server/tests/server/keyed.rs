//! `/api/v1/rate-limit`: limits by the name of an algorithm, for any key.

mod actuator;
mod backend;
mod client;
mod concurrency;
mod contract;
mod errors;
mod layout;
mod outage;
mod overrides;
mod reset;
mod time;

use hyper::Request;

use crate::harness::{Reply, Server};

pub(crate) const ALGORITHMS: [&str; 5] =
    ["TOKEN_BUCKET", "SLIDING_WINDOW", "SLIDING_WINDOW_COUNTER", "FIXED_WINDOW", "LEAKY_BUCKET"];

impl Server {
    /// Sends a request without body and token.
    async fn ask(&self, method: &str, path: &str) -> Reply {
        let path = format!("/api/v1/rate-limit/{path}");
        self.send(Request::builder().method(method).uri(path), "").await
    }

    /// `GET /check` with this query.
    async fn check_key(&self, query: &str) -> Reply {
        self.ask("GET", &format!("check?{query}")).await
    }

    /// `GET /remaining` with this query.
    async fn remaining(&self, query: &str) -> Reply {
        self.ask("GET", &format!("remaining?{query}")).await
    }

    /// `DELETE /reset` with this query, as the administrator.
    async fn reset_key(&self, query: &str) -> Reply {
        self.admin("DELETE", &format!("/api/v1/rate-limit/reset?{query}"), "").await
    }
}

/// The number in a field.
fn number(reply: &Reply, field: &str) -> u64 {
    let number = reply.json()[field].as_u64();
    number.unwrap_or_else(|| panic!("no number in {field}: {}", reply.text))
}

/// The number in a header.
fn counted(reply: &Reply, header: &str) -> u64 {
    let text = reply.header(header);
    text.parse().unwrap_or_else(|_| panic!("no number in {header}: {:?}", reply.headers))
}
