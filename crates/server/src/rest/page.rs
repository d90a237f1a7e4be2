//! Lists, one page at a time.

use headgate_ratelimit::Listed;
use serde::Serialize;
use utoipa::ToSchema;

/// Which part of a list was given.
#[derive(Serialize, ToSchema)]
#[schema(as = Pagination)]
pub(super) struct WirePagination {
    /// How many there are on all pages.
    total_count: u64,
    /// Which page it is, from 1.
    page: u32,
    /// How many a page has.
    page_size: u32,
    /// Whether there is another page.
    has_next: bool,
}

impl<T> From<&Listed<T>> for WirePagination {
    fn from(listed: &Listed<T>) -> Self {
        Self {
            total_count: listed.total,
            page: listed.page.number(),
            page_size: listed.page.size(),
            has_next: listed.has_next(),
        }
    }
}
