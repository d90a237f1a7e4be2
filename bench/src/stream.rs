//! Keys as they arrive from the network: text in one buffer, in the order of the requests.

use std::{fmt::Write, ops::Range};

/// The keys of a sequence of requests in one buffer, so that reading the next one costs every
/// contestant the same, and almost nothing.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    text: String,
}

/// Some of a stream's keys, in order.
#[derive(Clone, Debug)]
pub(crate) struct Keys<'a> {
    text: &'a str,
}

/// `user:` and seven digits.
const KEY_BYTES: usize = 12;

impl Stream {
    /// Subjects are numbered below this.
    pub(crate) const MAX_SUBJECTS: usize = 10_000_000;

    pub(crate) fn new(subjects: impl IntoIterator<Item = usize>) -> Self {
        let mut stream = Self::default();
        stream.refill(subjects);
        stream
    }

    /// Replaces all keys, in the same memory.
    pub(crate) fn refill(&mut self, subjects: impl IntoIterator<Item = usize>) {
        self.text.clear();
        for subject in subjects {
            assert!(subject < Self::MAX_SUBJECTS, "subject {subject} needs more digits");
            write!(self.text, "user:{subject:07}").expect("a String takes any text");
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.text.len() / KEY_BYTES
    }

    pub(crate) fn all(&self) -> Keys<'_> {
        self.keys(0..self.len())
    }

    pub(crate) fn keys(&self, range: Range<usize>) -> Keys<'_> {
        Keys { text: &self.text[range.start * KEY_BYTES..range.end * KEY_BYTES] }
    }
}

impl Keys<'_> {
    pub(crate) const fn len(&self) -> usize {
        self.text.len() / KEY_BYTES
    }

    /// The part that worker `i` of `count` gets.
    pub(crate) fn part(&self, i: usize, count: usize) -> Self {
        let cut = |i: usize| self.len() * i / count * KEY_BYTES;
        Self { text: &self.text[cut(i)..cut(i + 1)] }
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        let (key, rest) = self.text.split_at_checked(KEY_BYTES)?;
        self.text = rest;
        Some(key)
    }
}
