//! Generates the gRPC services, without a `protoc` binary.

use std::{env, error::Error, fs, path::PathBuf};

use protox::prost::Message as _;

const PROTO: &str = "proto";

const FILES: [&str; 3] = [
    "k1s0/system/ratelimit/v1/ratelimit.proto",
    "k1s0/system/quota/v1/quota.proto",
    "envoy/service/ratelimit/v3/rls.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let files = protox::compile(FILES, [PROTO])?;
    // Reflection serves these, comments included.
    fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;

    tonic_prost_build::configure().build_client(false).compile_fds(files)?;
    Ok(())
}
