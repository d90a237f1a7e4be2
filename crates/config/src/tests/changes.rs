use serde_json::json;

use crate::{Print, Printed, Secret, print_sections};

struct Whole {
    server: Server,
    tokens: Vec<Secret>,
}

struct Server {
    port: String,
    password: Option<Secret>,
}

print_sections! {
    Whole { server, tokens }
    Server { port, password }
}

fn secret(text: &str) -> Secret {
    serde_json::from_value(json!(text)).unwrap()
}

fn printed(port: &str, password: &str, tokens: &[&str]) -> Printed {
    let server = Server { port: port.to_owned(), password: Some(secret(password)) };
    Whole { server, tokens: tokens.iter().map(|token| secret(token)).collect() }.print()
}

#[test]
fn changes_are_the_keys_whose_values_differ() {
    let before = printed("80", "one", &["a"]);
    assert_eq!(before.changes(&printed("80", "one", &["a"])), []);
    let changes = before.changes(&printed("81", "one", &["a", "b"]));
    let keys: Vec<&str> = changes.iter().map(|change| &*change.key).collect();
    assert_eq!(keys, ["server.port", "tokens"]);
    assert_eq!(json!(changes[0].old), json!("80"));
    assert_eq!(json!(changes[0].new), json!("81"));
}

#[test]
fn a_changed_secret_is_a_change_but_is_not_shown() {
    let changes = printed("80", "one", &["a"]).changes(&printed("80", "two", &["b"]));
    let keys: Vec<&str> = changes.iter().map(|change| &*change.key).collect();
    assert_eq!(keys, ["server.password", "tokens"]);
    assert!(!format!("{changes:?}").contains("two"));
    assert_eq!(json!(changes[0].new), json!("***"));
}

#[test]
fn keys_are_those_of_all_values() {
    let printed = printed("80", "one", &[]);
    assert_eq!(printed.keys(), ["server.port", "server.password", "tokens"]);
    assert_eq!(printed.get("server.port"), Some(&Printed::scalar("80")));
    assert_eq!(printed.get("server.host"), None);
}
