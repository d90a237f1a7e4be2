//! `GET /api-docs/openapi.json` and the page that shows it.

use std::collections::BTreeSet;

use hyper::Request;
use serde_json::Value;

use crate::harness::Server;

const DOCUMENT: &str = "/api-docs/openapi.json";

#[tokio::test]
async fn the_document_has_a_version_and_describes_every_tag() {
    let server = Server::start(&[]).await;
    let reply = server.get(DOCUMENT).await;
    assert_eq!(reply.header("content-type"), "application/json");
    let document = reply.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let tags = document["tags"].as_array().unwrap().iter();
    let described: BTreeSet<_> = tags.map(|tag| tag["name"].as_str().unwrap()).collect();
    let operations = document["paths"].as_object().unwrap().values();
    let operations = operations.flat_map(|item| item.as_object().unwrap().values());
    let used: BTreeSet<_> = operations.map(|it| it["tags"][0].as_str().unwrap()).collect();
    assert_eq!(used, described);
}

#[tokio::test]
async fn every_path_has_the_methods_that_are_described() {
    let server = Server::start(&[]).await;
    let document = server.get(DOCUMENT).await.json();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().keys();
        let described: BTreeSet<_> = methods.map(|method| method.to_uppercase()).collect();
        let request = Request::builder().method("BREW").uri(path.replace(['{', '}'], ""));
        let reply = server.send(request, "").await;
        assert_eq!(reply.status, 405, "{path}");
        let allowed = reply.header("allow").split(',').map(|method| method.trim().to_owned());
        // HEAD is allowed wherever GET is.
        let allowed: BTreeSet<_> = allowed.filter(|method| method != "HEAD").collect();
        assert_eq!(allowed, described, "{path}");
    }
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_by_every_operation() {
    let server = Server::start(&[]).await;
    let document = server.get(DOCUMENT).await.json();
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths.iter().filter(|(path, _)| path.starts_with("/api/v1/")) {
        for (method, operation) in item.as_object().unwrap() {
            let uri = format!("{}?x=1", path.replace(['{', '}'], ""));
            let body = if operation["requestBody"].is_null() { "" } else { "{}" };
            let reply = server.admin(&method.to_uppercase(), &uri, body).await;
            assert_eq!(reply.status, 400, "{method} {path}: {}", reply.text);
            assert!(operation["responses"].get("400").is_some(), "{method} {path}");
            let parameters = operation["parameters"].as_array();
            let mut parameters = parameters.into_iter().flatten();
            if !parameters.any(|parameter| parameter["in"] == "query") {
                let details = reply.details();
                assert_eq!(details[0].0, "x", "{method} {path}: {details:?}");
            }
        }
    }
}

#[tokio::test]
async fn operations_require_a_token_where_the_document_says_so() {
    let server = Server::start(&[]).await;
    let document = server.get(DOCUMENT).await.json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let uri = path.replace(['{', '}'], "");
            let body = if operation["requestBody"].is_null() { "" } else { "{}" };
            let reply = server.with_token(None, &method.to_uppercase(), &uri, body).await;
            let protected = operation.get("security").is_some();
            assert_eq!(reply.status == 401, protected, "{method} {path}: {}", reply.text);
        }
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_not_found() {
    let server = Server::start(&[]).await;
    for method in ["GET", "DELETE"] {
        let reply = server.admin(method, "/api/v1/ratelimit/rules/%FF", "").await;
        assert_eq!(reply.status, 404, "{}", reply.text);
        assert_eq!(reply.json()["error"]["code"], "SYS_RATELIMIT_RULE_NOT_FOUND");
    }
}

#[tokio::test]
async fn the_document_has_the_configured_metrics_path() {
    let moved = Server::start(&[("observability.metrics.path", "/internal/metrics")]).await;
    let document = moved.get(DOCUMENT).await.json();
    assert!(document["paths"]["/metrics"].is_null());
    assert_ne!(document["paths"]["/internal/metrics"], Value::Null);
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let server = Server::start(&[]).await;
    let files = [
        ("/api-docs", "text/html; charset=utf-8"),
        ("/api-docs/", "text/html; charset=utf-8"),
        ("/api-docs/docs.js", "text/javascript; charset=utf-8"),
        ("/api-docs/docs.css", "text/css; charset=utf-8"),
    ];
    for (path, content_type) in files {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("content-type"), content_type);
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"));
        for elsewhere in ["http:", "https:", "\"//", "url(", "@import", "data:"] {
            assert!(!reply.text.contains(elsewhere), "{path} has {elsewhere}");
        }
    }
}

#[tokio::test]
async fn the_page_has_no_script_or_style_of_its_own_and_keeps_no_token() {
    let server = Server::start(&[]).await;
    let page = server.get("/api-docs").await.text;
    let script = server.get("/api-docs/docs.js").await.text;
    // The policy would refuse them.
    assert!(page.contains(r#"<script src="/api-docs/docs.js" type="module"></script>"#));
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("<style") && !page.contains("style=") && !page.contains("onclick"));
    for kept in ["localStorage", "sessionStorage", "cookie", "innerHTML"] {
        assert!(!script.contains(kept), "{kept}");
    }
}
