//! Pagination.

use thiserror::Error;

/// Number and size of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    number: u32,
    size: u32,
}

/// Invalid page.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PageError {
    /// The number is 0.
    #[error("page must be at least 1")]
    Number,
    /// The size is 0 or too large.
    #[error("page_size must be between 1 and {max}", max = Page::MAX_SIZE)]
    Size,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<T> {
    /// Items of the page.
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: u64,
    /// Number and size of the page.
    pub page: Page,
}

// === impl Page ===

impl Page {
    /// Maximum number of items per page.
    pub const MAX_SIZE: u32 = 100;

    /// The first page of 20 items.
    pub const DEFAULT: Self = Self { number: 1, size: 20 };

    /// Creates page `number`, from 1, with `size` items.
    pub const fn new(number: u32, size: u32) -> Result<Self, PageError> {
        if number == 0 {
            return Err(PageError::Number);
        }
        if size == 0 || size > Self::MAX_SIZE {
            return Err(PageError::Size);
        }
        Ok(Self { number, size })
    }

    /// Returns the number, from 1.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of items per page.
    pub const fn size(self) -> u32 {
        self.size
    }

    /// Returns the number of items on the pages before.
    pub fn offset(self) -> u64 {
        u64::from(self.number - 1) * u64::from(self.size)
    }
}

// === impl Listed ===

impl<T> Listed<T> {
    /// Whether another page follows.
    pub fn has_next(&self) -> bool {
        self.page.offset() + u64::from(self.page.size) < self.total
    }
}
