//! Elements of DER, the encoding of certificates.

/// The tag of a SEQUENCE.
pub(crate) const SEQUENCE: u8 = 0x30;

/// Reads one element after the other.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the tag and content of the next element; `None` at the end or where the encoding is
    /// invalid.
    pub(crate) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, short], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            // Four bytes of length are more than any certificate has.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(short - 0x80))?;
                let length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                (length, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// Returns the content of the next element, if it has this tag.
    pub(crate) fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    /// Returns the elements of the next SEQUENCE.
    pub(crate) fn sequence(&mut self) -> Option<Self> {
        self.expect(SEQUENCE).map(Self)
    }

    /// Returns the content of the next element and moves on, if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let content = ahead.expect(tag)?;
        *self = ahead;
        Some(content)
    }
}
