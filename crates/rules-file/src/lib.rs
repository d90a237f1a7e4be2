//! Files of rules, as `headgate rules apply` and services with embedded rules read them.
//!
//! | module | contents |
//! |---|---|
//! | `file` | [`Drafts`]: the rules of a file, and the line of each field |
//! | `draft` | fields in JSON as a draft, for validation without a server |
//! | `yaml` | YAML with line numbers |

mod draft;
mod file;
mod yaml;

pub use self::{
    draft::draft,
    file::{Drafts, FileError, Source},
    yaml::YamlError,
};
