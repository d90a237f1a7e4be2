//! Makes Rust of the one call that the bench answers, without a `protoc` on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../proto");
    let mut files = protox::compile(["k1s0/system/ratelimit/v1/ratelimit.proto"], ["../proto"])?;
    let services = files.file.iter_mut().flat_map(|file| &mut file.service);
    for service in services {
        service.method.retain(|method| method.name() == "CheckRateLimit");
    }
    tonic_prost_build::configure().build_client(false).compile_fds(files)?;
    Ok(())
}
