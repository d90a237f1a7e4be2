//! Short texts built on the stack.

/// A text of at most `N` bytes. A part that does not fit is left out: callers size it.
pub(super) struct TextBuffer<const N: usize> {
    bytes: [u8; N],
    written: usize,
}

/// A destination of texts.
pub(super) trait Push {
    fn push_text(&mut self, part: &str);

    /// Writes a number without the formatter, which would dominate the cost.
    fn push_number(&mut self, number: u64) {
        self.push_text(itoa::Buffer::new().format(number));
    }
}

impl<const N: usize> TextBuffer<N> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; N], written: 0 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.written]
    }
}

impl<const N: usize> Push for TextBuffer<N> {
    fn push_text(&mut self, part: &str) {
        let end = self.written + part.len();
        if let Some(room) = self.bytes.get_mut(self.written..end) {
            room.copy_from_slice(part.as_bytes());
            self.written = end;
        }
    }
}

impl Push for Vec<u8> {
    fn push_text(&mut self, part: &str) {
        self.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_does_not_fit_is_left_out() {
        let mut text = TextBuffer::<8>::new();
        text.push_text("limit=");
        text.push_number(100);
        text.push_number(10);
        assert_eq!(text.as_bytes(), b"limit=10");
    }
}
