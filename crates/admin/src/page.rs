//! One part of a list.

use thiserror::Error;

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: u32,
    size: u32,
}

/// Why numbers are no page.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PageError {
    /// Pages are counted from 1.
    #[error("page must be at least 1")]
    Number,
    /// An empty page says nothing, a large one takes too long.
    #[error("page_size must be between 1 and {max}", max = Page::MAX_SIZE)]
    Size,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// What is on the page.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: u64,
    /// Which page it is.
    pub page: Page,
}

// === impl Page ===

impl Page {
    /// The most items on a page.
    pub const MAX_SIZE: u32 = 100;

    /// What is shown unless said otherwise.
    pub const DEFAULT: Self = Self { number: 1, size: 20 };

    /// Page `number`, counted from 1, of pages with `size` items.
    pub const fn new(number: u32, size: u32) -> Result<Self, PageError> {
        if number == 0 {
            return Err(PageError::Number);
        }
        if size == 0 || size > Self::MAX_SIZE {
            return Err(PageError::Size);
        }
        Ok(Self { number, size })
    }

    /// Which page, from 1.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// How many items a page has.
    pub const fn size(self) -> u32 {
        self.size
    }

    /// How many items stand on the pages before.
    pub fn offset(self) -> u64 {
        u64::from(self.number - 1) * u64::from(self.size)
    }
}

// === impl Listed ===

impl<T> Listed<T> {
    /// Whether there is a page after this one.
    pub fn has_next(&self) -> bool {
        self.page.offset() + u64::from(self.page.size) < self.total
    }
}
