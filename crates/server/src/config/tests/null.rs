//! Keys that are set to nothing.

use super::*;

#[test]
fn null_leaves_a_key_at_its_default() {
    let config = load("redis:\nserver:\n  port: ~\n  host: null\n", &[]).unwrap();
    assert_eq!(config.server.address().to_string(), "127.0.0.1:8080");
    assert!(load("", &[]).is_ok());
    assert!(load("---\n# nothing\n", &[]).is_ok());
}

#[test]
fn null_excuses_no_key_that_there_is_not() {
    let told = problems("ratelimt:\nratelimit:\n  fail_opne:\nserver:\n  port: ~\n", &[]);
    let lines: Vec<&str> = told.lines().skip(1).map(str::trim).collect();
    assert!(lines[0].starts_with("ratelimit.fail_opne (config.yaml:3): unknown key; known here: "));
    assert!(lines[1].starts_with("ratelimt (config.yaml:1): unknown key; known here: app, "));
    assert_eq!(lines.len(), 2, "{told}");
    let listed = "auth:\n  tokens:\n    - {name: a, role: sys_admin, token_file: ~, rolle: ~}\n";
    let told = problems(listed, &[]);
    assert!(told.contains("auth.tokens[0].rolle (config.yaml:3): unknown key"), "{told}");
    let twice = problems("redis:\nredis:\n  url: redis://a\n", &[]);
    assert_eq!(twice, "config.yaml:2:1: \"redis\" stands here twice");
}

#[test]
fn null_stands_for_nothing_wherever_something_could_stand() {
    let nothing = "server:\nredis:\n  url: redis://a\n  password: ~\n  password_file: ~\ndatabase:\n  max_connections: ~\n";
    let config = load(nothing, &[("HEADGATE__SERVER__PORT", "9000")]).unwrap();
    assert_eq!(config.server.address().to_string(), "127.0.0.1:9000");
    assert!(config.redis.password.is_none());
    assert_eq!(config.database.max_open_conns.get(), 10);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "hunter2").unwrap();
    let beside =
        format!("redis:\n  url: redis://a\n  password: ~\n  password_file: {}\n", file.display());
    assert_eq!(load(&beside, &[]).unwrap().redis.password.unwrap().expose(), "hunter2");
}
