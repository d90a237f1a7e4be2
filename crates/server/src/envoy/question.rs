use super::rule::Rate;

/// The most descriptors in one request; each is a check of one batch.
pub(crate) const MAX_DESCRIPTORS: usize = 128;

const _: () = assert!(MAX_DESCRIPTORS <= headgate::Batch::MAX_CHECKS);

/// The most entries of one descriptor.
pub(crate) const MAX_ENTRIES: usize = 64;

/// What is asked: may all of these take what they want?
#[derive(Debug)]
pub(crate) struct Question<'a> {
    pub(crate) domain: &'a str,
    pub(crate) descriptors: Vec<Descriptor<'a>>,
}

#[derive(Debug)]
pub(crate) struct Descriptor<'a> {
    /// Keys and values, the outermost first.
    pub(crate) entries: Vec<(&'a str, &'a str)>,
    pub(crate) hits: Hits,
    /// In place of what is configured.
    pub(crate) instead: Option<Override>,
}

/// What a descriptor wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hits {
    Take(u64),
    /// To know what is left.
    Look,
    GiveBack(u64),
}

/// A rate that a request brings along; `None` if it is of no unit that there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Override(pub(crate) Option<Rate>);
