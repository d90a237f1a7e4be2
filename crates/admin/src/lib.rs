//! Vocabulary that the administration of rules, quotas and documents shares.
//!
//! | module | contents |
//! |---|---|
//! | [`change`] | [`Author`] and [`Revision`] of changes |
//! | [`input`] | validation of fields that reports all errors at once |
//! | [`page`] | pagination |

pub mod change;
pub mod input;
pub mod page;

pub use change::{Author, Revision};
pub use input::{FieldError, FieldReader, Input, InvalidValue};
pub use page::{Listed, Page, PageError};
