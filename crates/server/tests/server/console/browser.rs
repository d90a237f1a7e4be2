//! The console in a real browser: runs the scripts in `browser/` against a server.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use headgate::{Clock, SystemClock, Timestamp};
use headgate_service_config::{ServiceConfigRepository, ServiceState};
use headgate_testkit::{Browser, CertificateAuthority, Issuer, free_port, require};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    time::timeout,
};

use super::{TOKENS, relay};
use crate::{events::receiver::Receiver, harness::Server};

/// Timeout of a script.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A server that a script can stop and start.
struct Stage {
    address: SocketAddr,
    data: TempDir,
    keys: Vec<(&'static str, String)>,
    server: Option<Server>,
}

#[tokio::test(flavor = "multi_thread")]
async fn every_browser_story_of_the_console_passes() {
    let browser = require!(Browser::find());
    let issuer = Issuer::start();
    issuer.sign_in_as("sys_operator");
    let signing_in = vec![
        ("auth.jwks_url", issuer.url()),
        ("auth.issuer", issuer.name()),
        ("console.oidc.client_id", "headgate-console".to_owned()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("test");
    let (cert, key) = ca.issue(&["127.0.0.1"]).write(folder.path(), "tls");
    let certificates = format!("[{{cert_file: {}, key_file: {}}}]", cert.display(), key.display());
    let over_tls = [signing_in.clone(), vec![("server.tls.certificates", certificates)]].concat();
    let receiver = Receiver::start(&[]).await;
    let webhooks = ("webhooks", receiver.config("webhook-secret-0123456789", ""));
    // One after the other: a browser needs both cores of a small machine.
    for (story, keys) in [
        ("operate.mjs", vec![webhooks.clone()]),
        ("plans.mjs", vec![]),
        ("roles.mjs", vec![]),
        ("pages.mjs", vec![webhooks]),
        ("expired.mjs", vec![("console.session_ttl_seconds", "20".to_owned())]),
        ("oidc.mjs", signing_in),
        ("tls.mjs", over_tls),
        ("away.mjs", vec![]),
    ] {
        let mut stage = Stage::build(keys).await;
        let played = timeout(PATIENCE, stage.play(&browser, story)).await;
        let played = played.unwrap_or_else(|_| panic!("{story} did not end within {PATIENCE:?}"));
        assert!(played.is_ok(), "{story}:\n{}", played.unwrap_err());
    }
}

// === impl Stage ===

impl Stage {
    async fn build(mut keys: Vec<(&'static str, String)>) -> Self {
        let data = tempfile::tempdir().unwrap();
        keys.push(("server.data_dir", data.path().to_str().unwrap().to_owned()));
        keys.push(("auth.tokens", TOKENS.to_owned()));
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut stage = Self { address, data, keys, server: None };
        stage.start().await;
        stage.populate().await;
        stage
    }

    /// Registers a service, and reports what two instances of it run on.
    async fn populate(&self) {
        let state = |instance: &str, version, source: &str| ServiceState {
            service: "relay".to_owned(),
            instance: instance.to_owned(),
            version,
            source: source.to_owned(),
            seen_at: SystemClock::new().now(),
        };
        let states =
            [state("relay-one", Some(1), "document"), state("relay-two", None, "safe_defaults")];
        let documents = relay::documents(self.data.path());
        relay::register(&documents).await;
        documents.report(&states, Timestamp::default()).await.unwrap();
    }

    async fn start(&mut self) {
        let keys: Vec<_> = self.keys.iter().map(|(key, value)| (*key, value.as_str())).collect();
        self.server = Some(Server::start_at(self.address, &keys).await);
    }

    async fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop().await.unwrap();
        }
    }

    /// Runs a script and follows its orders; returns its output if it fails.
    async fn play(&mut self, browser: &Browser, story: &str) -> Result<(), String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/console/browser");
        let mut command = Command::from(browser.script(&folder.join(story)));
        let over_tls = self.keys.iter().any(|(key, _)| key.starts_with("server.tls"));
        let scheme = if over_tls { "https" } else { "http" };
        command.env("HEADGATE_URL", format!("{scheme}://{}", self.address));
        command.env("HEADGATE_SCREENSHOTS", screenshots(&self.data));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut script = command.kill_on_drop(true).spawn().map_err(|error| error.to_string())?;
        let mut orders = script.stdin.take().unwrap();
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
        let mut said = String::new();
        while let Ok(Some(line)) = lines.next_line().await {
            self.obey(&line, &mut orders).await;
            said = format!("{said}{line}\n");
        }
        outcome(script, said).await
    }

    async fn obey(&mut self, line: &str, orders: &mut ChildStdin) {
        match line {
            "@stop" => self.stop().await,
            "@start" => self.start().await,
            _ => return,
        }
        orders.write_all(b"done\n").await.unwrap();
    }
}

async fn outcome(mut script: Child, mut said: String) -> Result<(), String> {
    let mut errors = script.stderr.take().unwrap();
    // Unreadable output is ignored.
    let _ = errors.read_to_string(&mut said).await;
    let status = script.wait().await.map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(said) }
}

/// The folder of screenshots: `HEADGATE_SCREENSHOTS`, or the temporary folder of the test.
fn screenshots(data: &TempDir) -> PathBuf {
    let named = std::env::var_os("HEADGATE_SCREENSHOTS").map(PathBuf::from);
    named.unwrap_or_else(|| data.path().join("screenshots"))
}
