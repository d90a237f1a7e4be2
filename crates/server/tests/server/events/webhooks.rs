//! Webhooks: signatures, retries and order.

use std::{
    collections::HashMap,
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use headgate_testkit::{CertificateAuthority, Nginx, Skip, require};
use ring::hmac;
use serde_json::json;
use tokio::time::timeout;

use super::{
    receiver::{Answer, Delivery, Receiver},
    support::{exhausted, list},
};
use crate::harness::Server;

const SECRET: &str = "correct-horse-battery";

/// Verifies the signature as in docs/guides/events.md.
fn verify(delivery: &Delivery, secret: &str) -> bool {
    let signed =
        [delivery.header("x-headgate-timestamp").as_bytes(), b".", &delivery.body].concat();
    let signature = delivery.header("x-headgate-signature").strip_prefix("v1=").unwrap();
    let digits = signature.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    let signature: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hmac::verify(&key, &signed, &signature).is_ok()
}

/// Waits until the metric of webhooks has this value.
async fn metric_is(server: &Server, name: &str, value: u64) {
    let line = format!(r#"{name}{{sink="webhook",service="headgate"}} {value}"#);
    let has_value = async {
        while !server.get("/metrics").await.text.contains(&line) {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(120), has_value).await.expect("in time");
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.header("x-headgate-delivery")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_posted_as_it_is_listed_and_signed() {
    let receiver = Receiver::start(&[]).await;
    let server = Server::start(&[("webhooks", &receiver.config(SECRET, ""))]).await;
    exhausted(&server, "tenant-abc").await;
    let got = receiver.until(|got| got.len() == 2).await;
    let listed = list(&server, "").await;
    for (delivery, event) in got.iter().zip(listed["events"].as_array().unwrap()) {
        assert_eq!(delivery.event(), *event);
        assert_eq!(delivery.header("content-type"), "application/json");
        assert_eq!(delivery.header("x-headgate-event"), event["event_type"]);
        assert_eq!(delivery.header("x-headgate-delivery"), event["event_id"]);
        assert!(verify(delivery, SECRET) && !verify(delivery, "another-secret-of-ours"));
        let forged = Delivery { body: b"{}".as_slice().into(), ..delivery.clone() };
        assert!(!verify(&forged, SECRET));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_deliveries_are_retried_in_order_and_delivered_once() {
    let script = [
        Answer::Status(500),
        Answer::Status(404),
        Answer::Redirect,
        Answer::Silence,
        Answer::Status(202),
    ];
    let receiver = Receiver::start(&script).await;
    // Short enough to wait for, long enough that a busy machine answers in time.
    let webhooks = receiver.config(SECRET, ", timeout_seconds: 10");
    let server = Server::start(&[("webhooks", &webhooks)]).await;
    let id = exhausted(&server, "tenant-abc").await;
    let got = receiver.until(|got| got.len() == 6).await;
    let listed = list(&server, &format!("quota_id={id}")).await;
    let [first, second] =
        [0, 1].map(|place| listed["events"][place]["event_id"].as_str().unwrap().to_owned());
    assert_eq!(ids(&got), [&*first, &first, &first, &first, &first, &second]);
    assert!(got.iter().all(|delivery| verify(delivery, SECRET)));

    // The next delivery is a new event: accepted ones are not sent again.
    exhausted(&server, "tenant-def").await;
    let got = receiver.until(|got| got.len() >= 8).await;
    assert_eq!(got.len(), 8);
    assert!(got[6..].iter().all(|delivery| delivery.event()["subject_id"] == "tenant-def"));
    // A delivery is counted after its response.
    metric_is(&server, "headgate_events_delivered_total", 4).await;
    metric_is(&server, "headgate_event_delivery_failures_total", 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_event_delays_only_its_own_subject() {
    let receiver = Receiver::start(&[Answer::Status(400)]).await;
    let server = Server::start(&[("webhooks", &receiver.config(SECRET, ""))]).await;
    exhausted(&server, "one").await;
    exhausted(&server, "other").await;
    let got = receiver.until(|got| got.len() == 5).await;
    let of = |subject: &str| {
        let of = got.iter().filter(|delivery| delivery.event()["subject_id"] == subject);
        of.map(|delivery| delivery.header("x-headgate-event")).collect::<Vec<_>>()
    };
    let (reached, exceeded) = ("QUOTA_THRESHOLD_REACHED", "QUOTA_EXCEEDED");
    // They are posted concurrently: the first to arrive is rejected.
    let (refused, other) = match (of("one"), of("other")) {
        (one, other) if one.len() > other.len() => (one, other),
        (one, other) => (other, one),
    };
    assert_eq!(refused, [reached, reached, exceeded]);
    assert_eq!(other, [reached, exceeded]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_subscribed_events_are_posted() {
    let receiver = Receiver::start(&[]).await;
    let webhooks = receiver.config(SECRET, ", events: [QUOTA_EXCEEDED]");
    let server = Server::start(&[("webhooks", &webhooks)]).await;
    exhausted(&server, "one").await;
    exhausted(&server, "two").await;
    let got = receiver.until(|got| got.len() == 2).await;
    assert!(got.iter().all(|it| it.header("x-headgate-event") == "QUOTA_EXCEEDED"));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_wait_in_the_database_while_the_receiver_is_down() {
    let data = tempfile::tempdir().unwrap();
    let folder = ("server.data_dir", data.path().to_str().unwrap());
    let server = Server::start_in_place(&[folder]).await;
    exhausted(&server, "tenant-abc").await;
    server.stop().await.unwrap();
    let receiver = Receiver::start(&[]).await;
    let webhooks = receiver.config(SECRET, "");
    let _server = Server::start_in_place(&[folder, ("webhooks", &webhooks)]).await;
    let got = receiver.until(|got| got.len() == 2).await;
    assert!(got.iter().all(|delivery| verify(delivery, SECRET)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_receiver_accepts_only_our_signature() {
    let receiver = Receiver::start(&[]).await;
    let server = Server::start(&[("webhooks", &receiver.config(SECRET, ""))]).await;
    exhausted(&server, "tenant-abc").await;
    let got = receiver.until(|got| got.len() == 2).await;
    let guide = include_str!("../../../../../docs/guides/events.md");
    let example = guide.split_once("```python\n").unwrap().1.split_once("```").unwrap().0;
    let asked = "
import json, sys
asked = json.load(sys.stdin)
print(verify(asked['secret'].encode(), asked['headers'], asked['body'].encode()))
";
    let program = format!("{example}{asked}");
    let believes = |secret: &str, body: &str| {
        let names = ["x-headgate-timestamp", "x-headgate-signature"];
        let headers: HashMap<_, _> = names.map(|name| (name, got[0].header(name))).into();
        let asked = json!({"secret": secret, "headers": headers, "body": body});
        python(&program, &asked.to_string())
    };
    let body = str::from_utf8(&got[0].body).unwrap();
    assert_eq!(require!(believes(SECRET, body)), "True\n");
    assert_eq!(require!(believes("another-secret-of-ours", body)), "False\n");
    assert_eq!(require!(believes(SECRET, &body.replace("tenant-abc", "tenant-abd"))), "False\n");
}

/// Runs a program; returns its output.
fn python(program: &str, input: &str) -> Result<String, Skip> {
    let mut command = Command::new("python3");
    command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command
        .spawn()
        .map_err(|error| Skip { component: "python3".to_owned(), reason: error.to_string() })?;
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_of_a_private_authority_gets_a_client_certificate() {
    let receiver = Receiver::start(&[]).await;
    let (origin, path) = receiver.url.split_once("/hooks").unwrap();
    let port = origin.rsplit(':').next().unwrap().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("authority");
    let ca_file = authority.write(folder.path());
    let files = authority.issue(&["127.0.0.1"]).write(folder.path(), "receiver");
    let (cert, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let nginx = require!(Nginx::start_tls(port, &files, Some(&ca_file)));
    let url = format!("https://127.0.0.1:{}/hooks{path}", nginx.port());
    let webhook = |files: &str| format!("[{{url: '{url}', secret: {SECRET}{files}}}]");
    let trusted = format!(", ca_file: {}", ca_file.display());
    let named = format!("{trusted}, cert_file: {}, key_file: {}", cert.display(), key.display());

    let server = Server::start(&[("webhooks", &webhook(&named))]).await;
    exhausted(&server, "tenant-abc").await;
    assert_eq!(receiver.until(|got| got.len() == 2).await.len(), 2);

    // Neither an unknown authority nor a missing client certificate is passed over.
    for files in ["", &trusted] {
        let server = Server::start(&[("webhooks", &webhook(files))]).await;
        exhausted(&server, "tenant-abc").await;
        let failed = async {
            let name = "headgate_event_delivery_failures_total";
            while !failures(&server, name).await {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(120), failed).await.expect("a failure");
    }
    assert_eq!(receiver.until(|_| true).await.len(), 2);
}

/// Returns true if deliveries to webhooks have failed.
async fn failures(server: &Server, name: &str) -> bool {
    let metrics = server.get("/metrics").await.text;
    let mut lines = metrics.lines().filter(|line| line.starts_with(name));
    lines.any(|line| line.contains(r#"sink="webhook""#) && !line.ends_with(" 0"))
}
