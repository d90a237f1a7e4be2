//! What managing rules and managing quotas share: who does it, what was typed, which page is shown.
//!
//! | module | what it owns |
//! |---|---|
//! | [`author`] | who changes something, and when |
//! | [`input`] | fields before anybody knows whether they fit, and everything that does not |
//! | [`page`] | one part of a list |
//! | [`revision`] | names a set of things that others hold a copy of |

pub mod author;
pub mod input;
pub mod page;
pub mod revision;

pub use author::Author;
pub use input::{FieldError, Input, Reader, Refusal};
pub use page::{Listed, Page, PageError};
pub use revision::Revision;
