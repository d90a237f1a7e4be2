//! `grpc.reflection`, in both of its versions.

use tonic_reflection::server::{
    Builder, Error,
    v1::{ServerReflection, ServerReflectionServer},
    v1alpha,
};

use super::proto;

/// Maximum number of streams at a time. Each holds up to three answers of tens of kilobytes that a
/// caller does not read, of which connections count only the first.
pub(super) const MAX_STREAMS: usize = 64;

pub(super) fn v1() -> Result<ServerReflectionServer<impl ServerReflection>, Error> {
    described().build_v1()
}

pub(super) fn v1alpha()
-> Result<v1alpha::ServerReflectionServer<impl v1alpha::ServerReflection>, Error> {
    described().build_v1alpha()
}

fn described() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
