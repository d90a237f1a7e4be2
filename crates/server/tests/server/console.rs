//! The console: `session` tests signing in, `api` the requests of its pages, `browser` the pages in
//! a real browser.

mod api;
mod browser;
mod relay;
pub(crate) mod session;

use hyper::Request;

use crate::harness::{Reply, Server};

/// One of each role.
const TOKENS: &str = "[{name: root, role: sys_admin, token: admin-token-0123456789}, \
                      {name: ops, role: sys_operator, token: operator-token-0123456789}, \
                      {name: eyes, role: sys_auditor, token: auditor-token-0123456789}]";

const SESSION: &str = "/console/session";

/// Sends a request as a page of the console, with this cookie.
async fn ask(server: &Server, method: &str, path: &str, cookie: &str, body: &str) -> Reply {
    let mut request = Request::builder().method(method).uri(path).header("x-headgate-console", "1");
    if !cookie.is_empty() {
        request = request.header("cookie", cookie);
    }
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    server.send(request, body).await
}

/// Signs in; returns the cookie.
async fn sign_in(server: &Server, token: &str) -> String {
    let body = serde_json::json!({ "token": token }).to_string();
    let reply = ask(server, "POST", SESSION, "", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.header("set-cookie").split(';').next().unwrap().to_owned()
}
