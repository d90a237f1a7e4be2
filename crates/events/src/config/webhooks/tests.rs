use headgate_config::Print;

use crate::tests::Config;

const SECRET: &str = "0123456789abcdef";

fn load(webhooks: &str) -> Result<Config, String> {
    let variable = ("HEADGATE__WEBHOOKS".to_owned(), webhooks.to_owned());
    Config::load([variable])
}

#[track_caller]
fn is_rejected(webhook: &str, key: &str, expected: &str) {
    let told = load(&format!("[{{{webhook}}}]")).unwrap_err();
    assert!(told.contains(&format!("webhooks[0]{key}")), "{told}");
    assert!(told.contains(expected) && !told.contains("hunter2"), "{told}");
}

#[test]
fn events_are_unencrypted_to_this_machine_only() {
    for url in
        ["https://alerts.example/a", "http://127.0.0.1:1/a", "http://[::1]:1", "http://localhost"]
    {
        load(&format!("[{{url: '{url}', secret: {SECRET}}}]")).unwrap();
    }
    let clear = format!("url: 'http://alerts.example', secret: {SECRET}");
    is_rejected(&clear, ".url", "allow_insecure: true");
    load(&format!("[{{{clear}, allow_insecure: true}}]")).unwrap();
}

#[test]
fn invalid_webhooks_are_reported_by_key() {
    let secret = format!("secret: {SECRET}");
    for url in ["alerts", "ftp://a.example", "https://user:hunter2@a.example", "https://"] {
        is_rejected(&format!("url: '{url}', {secret}"), ".url", "expected an https:// URL");
    }
    is_rejected("url: 'https://a.example', secret: short", ".secret", "at least 16 bytes");
    is_rejected("url: 'https://a.example'", "", "missing key \"secret\"");
    let unknown = format!("url: 'https://a.example', {secret}, events: [QUOTA_GONE]");
    is_rejected(&unknown, ".events[0]", "must be one of: QUOTA_THRESHOLD_REACHED, QUOTA_EXCEEDED");
    let one = format!("{{url: 'https://a.example', {secret}}}");
    let told = load(&format!("[{one}, {one}]")).unwrap_err();
    assert!(told.contains("webhooks[1].url") && told.contains("same url"), "{told}");
    let told = load("nonsense").unwrap_err();
    assert!(told.contains("webhooks (HEADGATE__WEBHOOKS): expected a list such as"), "{told}");
}

#[test]
fn a_secret_can_be_in_a_file_and_is_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, "hunter2-hunter2-hunter2\n").unwrap();
    let webhook =
        format!("[{{url: 'https://a.example/T0K3N', secret_file: '{}'}}]", path.display());
    let config = load(&webhook).unwrap();
    assert_eq!(config.webhooks[0].secret.expose(), "hunter2-hunter2-hunter2");
    let shown = format!("{}{:?}", config.webhooks.print(), config.webhooks);
    assert!(!shown.contains("hunter2") && !shown.contains("T0K3N"), "{shown}");
}
