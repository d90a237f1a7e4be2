use super::*;

fn postgres(config: &DatabaseConfig) -> &PgConnectOptions {
    let Location::Postgres(options) = &config.location else { panic!("{config:?}") };
    options
}

#[test]
fn url_and_parts_give_the_same_options() {
    let url = "postgresql://me:s%40fe@db.example:5433/limits?sslmode=require";
    let by_url = DatabaseConfig::from_url(url).unwrap();
    let by_parts = DatabaseConfig::from_parts(&PostgresParts {
        host: "db.example",
        port: 5433,
        name: "limits",
        user: "me",
        password: Some("s@fe"),
        ssl_mode: "require",
    })
    .unwrap();
    // The driver's debug output contains all options.
    assert_eq!(format!("{:?}", postgres(&by_url)), format!("{:?}", postgres(&by_parts)));
    assert_eq!(postgres(&by_url).get_database(), Some("limits"));
}

#[test]
fn a_separate_password_is_used_if_the_url_has_none() {
    let words = |url: &str, password: &str| {
        let config = DatabaseConfig::from_url(url).unwrap().password_if_missing(password);
        format!("{:?}", postgres(&config))
    };
    let complete = words("postgres://me:own@host/db", "");
    assert!(complete.contains("own"), "{complete}");
    for url in ["postgres://me:own@host/db", "postgres://me@host/db?password=own"] {
        assert_eq!(words(url, "beside"), complete, "{url}");
    }
    for url in
        ["postgres://me@host/db", "postgres://me:@host/db", "postgres://me@host/db?password="]
    {
        assert_eq!(words(url, "own"), complete, "{url}");
        assert_eq!(
            words(url, ""),
            format!("{:?}", postgres(&DatabaseConfig::from_url(url).unwrap()))
        );
    }
    let port = words("postgres://host:5433/db", "beside");
    assert!(port.contains("beside"), "{port}");
}

#[test]
fn sqlite_urls_have_relative_or_absolute_paths() {
    for (url, path) in [
        ("sqlite://data/headgate.db", "data/headgate.db"),
        ("sqlite:data/headgate.db", "data/headgate.db"),
        ("sqlite:///var/lib/headgate.db", "/var/lib/headgate.db"),
    ] {
        let Location::File(file) = DatabaseConfig::from_url(url).unwrap().location else {
            panic!()
        };
        assert_eq!(file, PathBuf::from(path));
    }
    let memory = DatabaseConfig::from_url("sqlite::memory:").unwrap();
    assert!(matches!(memory.location, Location::Memory));
}

#[test]
fn errors_do_not_repeat_the_url() {
    for (url, expected) in [
        ("", DatabaseConfigError::Scheme),
        ("mysql://user:hunter2@host/db", DatabaseConfigError::Scheme),
        ("user:hunter2@host", DatabaseConfigError::Scheme),
        ("postgres:user:hunter2@host/db", DatabaseConfigError::Postgres),
        ("postgres://user:hunter2@host:port/db", DatabaseConfigError::Postgres),
        ("postgres://user:hunter2@host/db?sslmode=perhaps", DatabaseConfigError::Postgres),
        ("postgres://host/db?passwort=hunter2", DatabaseConfigError::Postgres),
        ("postgres://user:why?hunter2@host/db", DatabaseConfigError::Postgres),
        ("sqlite://", DatabaseConfigError::Sqlite),
        ("sqlite://data/", DatabaseConfigError::Sqlite),
        ("sqlite://file?key=hunter2", DatabaseConfigError::Sqlite),
    ] {
        let error = DatabaseConfig::from_url(url).unwrap_err();
        assert_eq!(error, expected, "{url}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn rejects_unknown_ssl_modes_and_invalid_schemas() {
    let parts = PostgresParts {
        host: "/run/postgresql",
        port: 5432,
        name: "headgate",
        user: "headgate",
        password: None,
        ssl_mode: "perhaps",
    };
    assert_eq!(DatabaseConfig::from_parts(&parts).unwrap_err(), DatabaseConfigError::SslMode);
    let config =
        DatabaseConfig::from_parts(&PostgresParts { ssl_mode: "prefer", ..parts }).unwrap();
    for schema in ["", "Quota", "a\"b", "1st", "pg_own", &"x".repeat(64)] {
        assert_eq!(
            config.clone().schema(schema).unwrap_err(),
            DatabaseConfigError::Schema,
            "{schema}"
        );
    }
    assert_eq!(config.schema("quota_2").unwrap().schema, "quota_2");
}

#[test]
fn debug_output_has_no_password() {
    let config = DatabaseConfig::from_url("postgres://me:hunter2@host/db").unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
}
