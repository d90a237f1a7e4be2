//! A real Envoy, with the configuration of a test.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    panic,
};

use headgate_testkit::{Envoy, free_port, require};

fn config(port: u16, body: &str) -> String {
    format!(
        r#"
static_resources:
  listeners:
    - address:
        socket_address: {{ address: 127.0.0.1, port_value: {port} }}
      filter_chains:
        - filters:
            - name: envoy.filters.network.direct_response
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.direct_response.v3.Config
                response: {{ inline_string: "{body}" }}
"#
    )
}

#[test]
fn serves_its_configuration_and_ends_with_its_handle() {
    let port = free_port();
    let envoy = require!(Envoy::start(&config(port, "hello"), port));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "hello");
    drop(envoy);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn an_invalid_configuration_is_reported() {
    let port = free_port();
    let started = panic::catch_unwind(|| {
        require!(Envoy::start("no_such_key: 1", port));
        panic!("it has started");
    });
    // Nothing to test if Envoy is not installed.
    if let Err(told) = started {
        let told = told.downcast::<String>().unwrap();
        assert!(told.contains("no_such_key"), "{told}");
    }
}
