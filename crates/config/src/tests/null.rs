use super::*;

#[test]
fn null_leaves_a_key_at_its_default() {
    let config = load("database:\nserver:\n  port: ~\n  verbose: null\n", &[]).unwrap();
    assert_eq!((config.server.port.get(), config.server.verbose), (8080, false));
    assert!(load("", &[]).is_ok());
    assert!(load("---\n# nothing\n", &[]).is_ok());
}

#[test]
fn null_does_not_hide_an_unknown_key() {
    let message = problems("sever:\nserver:\n  prot:\n  port: ~\n", &[]);
    assert_eq!(
        message,
        "invalid configuration:\n  \
         server.prot (config.yaml:3): unknown key; known here: port, verbose\n  \
         sever (config.yaml:1): unknown key; known here: server, database, tokens"
    );
    let message = problems("tokens:\n  - {name: a, value: b, valeu: ~}\n", &[]);
    assert!(message.contains("tokens[0].valeu (config.yaml:2): unknown key"), "{message}");
    let twice = problems("server:\nserver:\n  port: 80\n", &[]);
    assert_eq!(twice, "config.yaml:2:1: duplicate key \"server\"");
}

#[test]
fn null_is_overridden_by_a_variable_or_a_secret_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "hunter2").unwrap();
    let yaml = format!(
        "server:\ndatabase:\n  port: ~\n  password: ~\n  password_file: {}\n",
        file.display()
    );
    let config = load(&yaml, &[("TEST__SERVER__PORT", "9000")]).unwrap();
    assert_eq!(config.server.port.get(), 9000);
    assert!(config.database.port.is_none());
    assert_eq!(config.database.password.unwrap().expose(), "hunter2");
    let without = load("database:\n  password: ~\n  password_file: ~\n", &[]).unwrap();
    assert!(without.database.password.is_none());
}
