//! Makes Rust of the one call that the bench answers, and of the one that it makes, without a `protoc` on the machine.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=../proto");
    let mut files = protox::compile(["k1s0/system/ratelimit/v1/ratelimit.proto"], ["../proto"])?;
    let services = files.file.iter_mut().flat_map(|file| &mut file.service);
    for service in services {
        service.method.retain(|method| method.name() == "CheckRateLimit");
    }
    tonic_prost_build::configure().build_client(false).compile_fds(files)?;
    let envoy = protox::compile(["envoy/service/ratelimit/v3/rls.proto"], ["../proto"])?;
    tonic_prost_build::configure().build_server(false).build_transport(false).compile_fds(envoy)?;
    Ok(())
}
