//! Makes Rust of the `.proto` files, without a `protoc` on the machine.

use std::{env, error::Error, fs, path::PathBuf};

use protox::prost::Message as _;

const PROTO: &str = "../../proto";

/// What the server answers.
const SERVED: [&str; 3] = [
    "k1s0/system/ratelimit/v1/ratelimit.proto",
    "k1s0/system/quota/v1/quota.proto",
    "envoy/service/ratelimit/v3/rls.proto",
];

/// What the server asks of a management server.
const ASKED: [&str; 2] =
    ["envoy/service/discovery/v3/ads.proto", "ratelimit/config/ratelimit/v3/rls_conf.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let files = protox::compile(SERVED, [PROTO])?;
    // Reflection shows these, comments included.
    fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;

    let server = tonic_prost_build::configure().build_client(false);
    server.compile_fds(files.clone())?;
    let client = || tonic_prost_build::configure().build_server(false).build_transport(false);
    // Only the tests are a client of these: they include this.
    let tests = out.join("client");
    fs::create_dir_all(&tests)?;
    client().out_dir(tests).compile_fds(files)?;

    let xds = out.join("xds");
    fs::create_dir_all(&xds)?;
    let files = protox::compile(ASKED, [PROTO])?;
    client().out_dir(xds).include_file("mod.rs").compile_fds(files)?;
    Ok(())
}
