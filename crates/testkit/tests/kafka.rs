//! A Kafka broker starts, restarts with its data after a crash, and cleans up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::{
    env,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
};

use headgate_testkit::{Kafka, require};

#[test]
fn a_broker_listens_crashes_on_request_and_cleans_up() {
    let kafka = require!(Kafka::builder().secure().start());
    let secure = kafka.secure();
    let addresses = [kafka.brokers(), secure.ssl, secure.sasl_ssl];
    for address in &addresses {
        assert!(TcpStream::connect(address).is_ok(), "{address}");
    }
    assert!(secure.ca_file.is_file());
    let (folder, first) = (kafka.folder().to_owned(), process(&kafka));
    let cluster = || std::fs::read_to_string(folder.join("data/meta.properties")).unwrap();
    let before = cluster();

    kafka.stop();
    assert!(!first.exists() && folder.exists());
    for address in &addresses {
        assert!(TcpListener::bind(address).is_ok(), "{address}");
    }

    kafka.restart();
    let second = process(&kafka);
    assert_ne!(first, second);
    assert_eq!(cluster(), before);
    for address in &addresses {
        assert!(TcpStream::connect(address).is_ok(), "{address}");
    }

    drop(kafka);
    assert!(!second.exists() && !folder.exists());
}

#[test]
fn shared_brokers_are_the_same_broker() {
    let one = require!(Kafka::shared());
    let two = require!(Kafka::shared());
    assert_eq!(one.brokers(), two.brokers());
    assert_ne!(one.new_topic(), two.new_topic());
}

/// Runs in a process of its own, with another environment.
#[test]
fn the_environment_overrides_brokers_and_jars() {
    const CHILD: &str = "HEADGATE_TESTKIT_CHILD";
    if env::var_os(CHILD).is_none() {
        let empty = tempfile::tempdir().unwrap();
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "the_environment_overrides_brokers_and_jars"])
            .env(CHILD, "1")
            .env("HEADGATE_TEST_KAFKA_BROKERS", "kafka-1:9092,kafka-2:9092")
            .env("XDG_CACHE_HOME", empty.path())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    assert_eq!(Kafka::shared().unwrap().brokers(), "kafka-1:9092,kafka-2:9092");
    let skip = Kafka::start().unwrap_err();
    assert_eq!(skip.component, "kafka");
}

fn process(kafka: &Kafka) -> PathBuf {
    PathBuf::from(format!("/proc/{}", kafka.pid()))
}
