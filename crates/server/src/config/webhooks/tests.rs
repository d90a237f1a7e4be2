use crate::Config;

const SECRET: &str = "0123456789abcdef";

fn load(webhooks: &str) -> Result<Config, String> {
    let variable = ("HEADGATE__WEBHOOKS".to_owned(), webhooks.to_owned());
    Config::load(None, [variable]).map_err(|error| error.to_string())
}

#[track_caller]
fn is_refused(webhook: &str, key: &str, expected: &str) {
    let told = load(&format!("[{{{webhook}}}]")).unwrap_err();
    assert!(told.contains(&format!("webhooks[0]{key}")), "{told}");
    assert!(told.contains(expected) && !told.contains("hunter2"), "{told}");
}

#[test]
fn events_go_in_the_clear_to_this_machine_alone() {
    for url in
        ["https://alerts.example/a", "http://127.0.0.1:1/a", "http://[::1]:1", "http://localhost"]
    {
        load(&format!("[{{url: '{url}', secret: {SECRET}}}]")).unwrap();
    }
    let clear = format!("url: 'http://alerts.example', secret: {SECRET}");
    is_refused(&clear, ".url", "allow_insecure: true");
    load(&format!("[{{{clear}, allow_insecure: true}}]")).unwrap();
}

#[test]
fn what_is_no_webhook_is_refused_by_its_path() {
    let secret = format!("secret: {SECRET}");
    for url in ["alerts", "ftp://a.example", "https://user:hunter2@a.example", "https://"] {
        is_refused(&format!("url: '{url}', {secret}"), ".url", "expected an https:// URL");
    }
    is_refused("url: 'https://a.example', secret: short", ".secret", "at least 16 bytes");
    is_refused("url: 'https://a.example'", "", "missing key \"secret\"");
    let unknown = format!("url: 'https://a.example', {secret}, events: [QUOTA_GONE]");
    is_refused(&unknown, ".events[0]", "must be one of: QUOTA_THRESHOLD_REACHED, QUOTA_EXCEEDED");
    let one = format!("{{url: 'https://a.example', {secret}}}");
    let told = load(&format!("[{one}, {one}]")).unwrap_err();
    assert!(told.contains("webhooks[1].url") && told.contains("same url"), "{told}");
    let told = load("nonsense").unwrap_err();
    assert!(told.contains("webhooks (HEADGATE__WEBHOOKS): expected a list such as"), "{told}");
}

#[test]
fn a_secret_can_be_in_a_file_and_is_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, "hunter2-hunter2-hunter2\n").unwrap();
    let webhook =
        format!("[{{url: 'https://a.example/T0K3N', secret_file: '{}'}}]", path.display());
    let config = load(&webhook).unwrap();
    assert_eq!(config.webhooks[0].secret.expose(), "hunter2-hunter2-hunter2");
    let shown = format!("{}{:?}", config.printed(), config.webhooks);
    assert!(!shown.contains("hunter2") && !shown.contains("T0K3N"), "{shown}");
}
