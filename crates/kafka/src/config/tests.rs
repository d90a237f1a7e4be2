use super::*;

fn config(security: Security) -> KafkaConfig {
    KafkaConfig::new(vec!["kafka:9092".into()], security)
}

fn sasl(username: &str, password: &str) -> Security {
    Security::SaslSsl {
        mechanism: Mechanism::ScramSha512,
        username: username.into(),
        password: password.into(),
        files: TlsFiles::default(),
    }
}

#[test]
fn brokers_are_host_and_port() {
    for address in ["kafka:9092", "kafka-1.example.com:1", "10.0.0.1:65535", "[::1]:9092"] {
        assert!(is_address(address), "{address}");
    }
    for address in [
        "",
        "kafka",
        "kafka:",
        ":9092",
        "kafka:0",
        "kafka:65536",
        "kafka:+1",
        "a:1,b:2",
        "SSL://kafka:9092",
        "::1:9092",
        "[kafka]:9092",
        "kafka :9092",
    ] {
        assert!(!is_address(address), "{address}");
    }
}

#[test]
fn invalid_configurations_are_rejected() {
    let mut none = config(Security::Plaintext);
    none.brokers.clear();
    assert_eq!(none.validate(), Err(KafkaConfigError::NoBrokers));

    let mut hasty = config(Security::Plaintext);
    hasty.send_timeout = Duration::from_millis(99);
    assert_eq!(hasty.validate(), Err(KafkaConfigError::Timeout(hasty.send_timeout)));

    assert_eq!(config(sasl("", "x")).validate(), Err(KafkaConfigError::Credential("username")));
    assert_eq!(config(sasl("x", "")).validate(), Err(KafkaConfigError::Credential("password")));
    assert_eq!(config(sasl("x", "a\0b")).validate(), Err(KafkaConfigError::Credential("password")));

    let files = TlsFiles { ca_file: Some("/no/such/file".into()), ..TlsFiles::default() };
    let missing = Security::Ssl { files };
    let error = config(missing).validate().unwrap_err().to_string();
    assert!(error.starts_with("/no/such/file: cannot read the file: "), "{error}");
    assert_eq!(config(sasl("x", "y")).validate(), Ok(()));
}

#[test]
fn debug_output_has_no_credentials() {
    let shown = format!("{:?}", config(sasl("who-it-is", "what-it-is")));
    assert!(shown.contains("ScramSha512"), "{shown}");
    assert!(!shown.contains("who-it-is") && !shown.contains("what-it-is"), "{shown}");
}

#[test]
fn mechanisms_are_parsed_by_name() {
    assert_eq!("SCRAM-SHA-512".parse(), Ok(Mechanism::ScramSha512));
    assert_eq!("SCRAM-SHA-256".parse(), Ok(Mechanism::ScramSha256));
    assert_eq!("PLAIN".parse(), Ok(Mechanism::Plain));
    assert_eq!("GSSAPI".parse::<Mechanism>(), Err(UnknownMechanism("GSSAPI".into())));
}
