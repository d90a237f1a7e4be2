use super::*;

fn password(config: &Config) -> &str {
    config.database.password.as_ref().unwrap().expose()
}

#[test]
fn a_secret_can_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("password");
    fs::write(&secret, "hunter2\n").unwrap();
    let path = secret.to_str().unwrap();

    let by_file = load(&format!("database:\n  password_file: {path}\n"), &[]).unwrap();
    assert_eq!(password(&by_file), "hunter2");
    assert!(!format!("{by_file:?}").contains("hunter2"));

    let variable = [("TEST__DATABASE__PASSWORD_FILE", path)];
    let by_variable = load("database:\n  password: old\n", &variable).unwrap();
    assert_eq!(password(&by_variable), "hunter2");

    let variable = [("TEST__DATABASE__PASSWORD", "new")];
    let overridden = load(&format!("database:\n  password_file: {path}\n"), &variable).unwrap();
    assert_eq!(password(&overridden), "new");

    let listed = load(&format!("tokens:\n  - {{name: a, value_file: {path}}}\n"), &[]).unwrap();
    assert_eq!(listed.tokens[0].value.expose(), "hunter2");
}

#[test]
fn a_secret_file_must_be_readable_and_the_only_source() {
    assert_eq!(
        problems("database:\n  password: a\n  password_file: /b\n", &[]),
        "invalid configuration:\n  database.password_file (config.yaml:3): \
         set database.password or database.password_file, not both"
    );
    assert_eq!(
        problems("", &[("TEST__DATABASE__PASSWORD_FILE", "/no/such/file")]),
        "invalid configuration:\n  database.password_file (TEST__DATABASE__PASSWORD_FILE): \
         cannot read /no/such/file: No such file or directory (os error 2)"
    );
    assert_eq!(
        problems("tokens:\n  - {name: a, value_file: /no/such/file}\n", &[]),
        "invalid configuration:\n  tokens[0].value_file (config.yaml:2): \
         cannot read /no/such/file: No such file or directory (os error 2)"
    );
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    for yaml in ["database: hunter2\n", "database:\n  password: {hunter2: x}\n"] {
        let message = problems(yaml, &[]);
        assert!(!message.contains("hunter2"), "{message}");
    }
}
