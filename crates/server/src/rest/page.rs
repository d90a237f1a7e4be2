//! Lists, one page at a time.

use headgate_ratelimit::Listed;
use serde::Serialize;
use utoipa::ToSchema;

/// Pagination of a list.
#[derive(Serialize, ToSchema)]
#[schema(as = Pagination)]
pub(super) struct WirePagination {
    /// Number of items on all pages.
    total_count: u64,
    /// Page number, from 1.
    page: u32,
    /// Items per page.
    page_size: u32,
    /// True if there is another page.
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
