//! Lists that servers send in pages.

use std::{collections::BTreeMap, io};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::client::{Client, ClientError};

#[derive(Deserialize)]
struct Page<T> {
    #[serde(alias = "rules", alias = "quotas", alias = "overrides")]
    items: Vec<T>,
    pagination: Pagination,
    /// Revision of the rules that the page belongs to. Quotas and servers of older versions send
    /// none.
    revision: Option<i64>,
}

#[derive(Deserialize)]
struct Pagination {
    has_next: bool,
}

const MAX_PAGE_SIZE: &str = "100";

/// Maximum number of times a list is read from its first page because it changed in between.
const MAX_ATTEMPTS: usize = 5;

/// Returns all items at `path` that match `filter`, consistent with one revision.
pub(crate) fn all<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    filter: &[(&str, &str)],
) -> Result<Vec<T>, ClientError> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(items) = read(client, path, filter)? {
            return Ok(items);
        }
    }
    Err(ClientError::KeepsChanging)
}

/// Reads all pages; `None` if the revision changed between two of them.
fn read<T: DeserializeOwned>(
    client: &Client,
    path: &[&str],
    filter: &[(&str, &str)],
) -> Result<Option<Vec<T>>, ClientError> {
    let (mut items, mut revision) = (Vec::new(), None);
    for number in 1_u64.. {
        let number = number.to_string();
        let mut query = vec![("page", number.as_str()), ("page_size", MAX_PAGE_SIZE)];
        query.extend(filter);
        let page: Page<T> = client.get(path, &query)?.json()?;
        if *revision.get_or_insert(page.revision) != page.revision {
            return Ok(None);
        }
        // An empty page ends the loop even if the server claims that more follow.
        let more = page.pagination.has_next && !page.items.is_empty();
        items.extend(page.items);
        if !more {
            break;
        }
    }
    Ok(Some(items))
}

/// Writes items as the server sent them, as one JSON object with the list under `name`.
pub(crate) fn write_json(
    out: &mut dyn io::Write,
    name: &str,
    items: &[Box<RawValue>],
) -> io::Result<()> {
    serde_json::to_writer(&mut *out, &BTreeMap::from([(name, items)]))?;
    writeln!(out)
}
