//! `headgate serve`

use std::{fs, io::ErrorKind, net::TcpListener};

use crate::harness::{Server, headgate, run, stderr, stdout};

#[test]
fn prints_addresses_store_and_default_rule() {
    let server = Server::start(&[]);
    let port = server.url().rsplit(':').next().unwrap();
    let expected = format!(
        "headgate {} listening on http://127.0.0.1:{port}, gRPC on 127.0.0.1:",
        env!("CARGO_PKG_VERSION")
    );
    assert!(server.greeting.starts_with(&expected), "{}", server.greeting);
    assert!(server.greeting.ends_with(" (store: memory; default rule: 100 per 60 s)\n"));
}

#[test]
fn ends_on_sigterm_and_sigint() {
    for signal in ["-TERM", "-INT"] {
        let status = Server::start(&[]).signal(signal);
        assert_eq!(status.code(), Some(0), "{signal}");
    }
}

#[test]
fn reads_the_configuration_file_from_flag_or_variable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headgate.yaml");
    fs::write(&file, "ratelimit:\n  default_limit: 7\n").unwrap();
    let path = file.to_str().unwrap();
    let server = Server::start(&[("CONFIG_PATH", path)]);
    assert!(server.greeting.contains("default rule: 7 per 60 s"), "{}", server.greeting);

    fs::write(&file, "server:\n  prot: 1\n").unwrap();
    let output = run(&["serve", "--config", path], &[]);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!(
        "headgate: invalid configuration:\n  server.prot ({path}:2): unknown key; \
         known here: host, port, grpc_port, reuse_port, unix_socket, grpc_unix_socket, unix_socket_mode, tls, grpc_tls, data_dir, workers, trusted_proxies, forwarded_by, ipv6_prefix_length, \
         request_timeout_seconds, idle_timeout_seconds, max_connections, max_buffered_bytes, \
         shutdown_delay_seconds, shutdown_grace_seconds, shutdown_timeout_seconds, watch_config\n"
    );
    assert_eq!(stderr(&output), expected);
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_port_in_use_is_reported_and_nothing_is_written() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (key, other) in [("port", "GRPC_PORT"), ("grpc_port", "PORT")] {
        let variable = format!("HEADGATE__SERVER__{}", key.to_ascii_uppercase());
        let other = format!("HEADGATE__SERVER__{other}");
        let folder = tempfile::tempdir().unwrap();
        let variables = [(variable.as_str(), port.as_str()), (other.as_str(), "0")];
        let output = headgate(&["serve"], &variables).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let expected = format!(
            "headgate: cannot listen on 127.0.0.1:{port}: Address already in use (os error 98)\n\
             Set another server.{key}, or {variable}\n"
        );
        assert_eq!(stderr(&output), expected, "{output:?}");
        assert_eq!(stdout(&output), "");
        let left: Vec<_> = fs::read_dir(&folder).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_port_in_use_is_found_before_connecting_to_databases() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    // A placeholder for PostgreSQL and Redis: connections wait in its backlog.
    let stores = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    stores.set_nonblocking(true).unwrap();
    let address = stores.local_addr().unwrap();
    let database = format!("postgresql://headgate@{address}/headgate");
    let redis = format!("redis://{address}");
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("HEADGATE__SERVER__PORT", port.as_str()),
        ("HEADGATE__SERVER__GRPC_PORT", "0"),
        ("HEADGATE__DATABASE__URL", database.as_str()),
        ("HEADGATE__REDIS__URL", redis.as_str()),
    ];
    let output = headgate(&["serve"], &variables).current_dir(&folder).output().unwrap();
    assert!(stderr(&output).contains("cannot listen on"), "{output:?}");
    let connected = stores.accept().expect_err("no connection");
    assert_eq!(connected.kind(), ErrorKind::WouldBlock);
}

#[test]
fn an_invalid_log_filter_is_rejected() {
    let output = run(&["serve"], &[("RUST_LOG", "headgate=loud"), ("HEADGATE__SERVER__PORT", "0")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("headgate: RUST_LOG does not parse: "), "{output:?}");
}
