//! Generates the messages and the client of the xDS protocol, without a `protoc` binary.

use std::error::Error;

const PROTO: &str = "proto";

const FILES: [&str; 2] =
    ["envoy/service/discovery/v3/ads.proto", "ratelimit/config/ratelimit/v3/rls_conf.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let files = protox::compile(FILES, [PROTO])?;
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .include_file("xds.rs")
        .compile_fds(files)?;
    Ok(())
}
