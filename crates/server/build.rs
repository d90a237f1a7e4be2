//! Makes Rust of the `.proto` files, without a `protoc` on the machine.

use std::{env, error::Error, fs, path::PathBuf};

use protox::prost::Message as _;

const PROTO: &str = "../../proto";

const FILES: [&str; 3] = [
    "k1s0/system/ratelimit/v1/ratelimit.proto",
    "k1s0/system/quota/v1/quota.proto",
    "envoy/service/ratelimit/v3/rls.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let files = protox::compile(FILES, [PROTO])?;
    // Reflection shows these, comments included.
    fs::write(out.join("descriptors.bin"), files.encode_to_vec())?;

    let server = tonic_prost_build::configure().build_client(false);
    server.compile_fds(files.clone())?;
    // Only the tests are a client: they include this.
    let client_dir = out.join("client");
    fs::create_dir_all(&client_dir)?;
    let client = tonic_prost_build::configure().build_server(false).build_transport(false);
    client.out_dir(client_dir).compile_fds(files)?;
    Ok(())
}
