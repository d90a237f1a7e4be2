//! `/api/v1/quotas` and `k1s0.system.quota.v1`, on the embedded default and on PostgreSQL and
//! Redis.

mod backend;
mod concurrency;
mod contract;
mod errors;
pub(crate) mod grpc;
mod numbers;
mod outage;
mod policy;
mod reservations;
mod roles;

use serde_json::{Value, json};

use crate::harness::{Reply, Server};

pub(crate) const QUOTAS: &str = "/api/v1/quotas";

/// A monthly policy, so that tests rarely cross the end of a period.
fn policy(subject: &str, limit: u64) -> Value {
    json!({
        "name": format!("quota of {subject}"), "subject_type": "tenant", "subject_id": subject,
        "limit": limit, "period": "monthly",
    })
}

/// Status, code and message of an error.
fn error(reply: &Reply) -> (u16, String, String) {
    let error = &reply.json()["error"];
    let text = |key: &str| error[key].as_str().unwrap().to_owned();
    (reply.status.as_u16(), text("code"), text("message"))
}

impl Server {
    /// Creates a policy; returns its id.
    async fn create_quota(&self, policy: &Value) -> String {
        let reply = self.admin("POST", QUOTAS, &policy.to_string()).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    async fn increment(&self, id: &str, amount: u64, request_id: Option<&str>) -> Reply {
        let mut body = json!({"amount": amount});
        if let Some(request_id) = request_id {
            body["request_id"] = json!(request_id);
        }
        let path = format!("{QUOTAS}/{id}/usage/increment");
        self.admin("POST", &path, &body.to_string()).await
    }

    async fn quota_usage(&self, id: &str) -> Reply {
        self.admin("GET", &format!("{QUOTAS}/{id}/usage"), "").await
    }

    async fn used(&self, id: &str) -> u64 {
        let reply = self.quota_usage(id).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()["used"].as_u64().unwrap()
    }
}
