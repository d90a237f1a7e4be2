//! Generates gRPC clients for the tests, without a `protoc` binary.

use std::error::Error;

const PROTO: &str = "proto";

const FILES: [&str; 3] = [
    "k1s0/system/ratelimit/v1/ratelimit.proto",
    "k1s0/system/quota/v1/quota.proto",
    "envoy/service/ratelimit/v3/rls.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let client = tonic_prost_build::configure().build_server(false).build_transport(false);
    client.compile_fds(protox::compile(FILES, [PROTO])?)?;
    Ok(())
}
