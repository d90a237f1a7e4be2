use crate::Rate;

/// Maximum number of descriptors in a request; each is a check of one batch.
pub const MAX_DESCRIPTORS: usize = 128;

const _: () = assert!(MAX_DESCRIPTORS <= headgate::Batch::MAX_CHECKS);

/// Maximum number of entries of a descriptor.
pub const MAX_ENTRIES: usize = 64;

/// A request that Envoy asks about: all of its descriptors must have room.
#[derive(Debug)]
pub struct EnvoyRequest<'a> {
    /// Domain whose limits apply.
    pub domain: &'a str,
    /// Descriptors of the request, for limits to match.
    pub descriptors: Vec<Descriptor<'a>>,
}

/// One descriptor of a request.
#[derive(Debug)]
pub struct Descriptor<'a> {
    /// Keys and values, outermost first.
    pub entries: Vec<(&'a str, &'a str)>,
    /// Units that it takes, gives back or peeks at.
    pub hits: Hits,
    /// Rate to use instead of the configured one.
    pub limit_override: Option<Rate>,
}

/// Units that a descriptor takes, gives back or peeks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hits {
    /// Takes units.
    Take(u64),
    /// Takes nothing, and is denied if nothing is left.
    Peek,
    /// Gives units back.
    Refund(u64),
}
