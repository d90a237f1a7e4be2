//! The bootstrap document, which clients read before they know any node.

use headgate_service_config::{Document, LoadError, Reader, document};
use serde_json::{Map, Value};

use super::{AuthSettings, PER_MINUTE};

/// Settings of bootstrap.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapDocument {
    /// Authentication of clients.
    pub auth: AuthSettings,
    /// Description of this node, if it has one.
    pub descriptor: Option<Value>,
    /// Expiry of the description, as the operator wrote it.
    pub exp: Option<Value>,
    /// Other nodes.
    pub nodes: Vec<Value>,
    /// The latest hint, if there is one.
    pub hint: Option<Value>,
    /// Services of each topic.
    pub topics: Map<String, Value>,
    /// Requests of an address per minute; the user API's limit of public requests if `None`. It
    /// cannot be switched off.
    pub by_ip: Option<u64>,
}

/// Maximum number of nodes, of topics, and of services of a topic.
const MAX_ITEMS: usize = 500;

impl Document for BootstrapDocument {
    const SERVICE: &'static str = "bootstrap";

    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            auth: reader.section("auth", AuthSettings::read),
            descriptor: reader.any("descriptor").cloned(),
            exp: reader.any("exp").cloned(),
            nodes: reader.list("nodes", MAX_ITEMS),
            hint: reader.any("hint").cloned(),
            topics: reader.list_map("topics", MAX_ITEMS),
            by_ip: reader
                .section("rate_limit", |section| section.optional_number("by_ip", PER_MINUTE)),
        }
    }

    fn safe_defaults(error: &LoadError) -> Self {
        Self {
            auth: AuthSettings::safe_defaults(error),
            // Without a document the user API's limit applies, which may be a safe default itself.
            by_ip: (*error != LoadError::Missing).then_some(30),
            ..Self::default()
        }
    }
}

impl Default for BootstrapDocument {
    fn default() -> Self {
        document::defaults()
    }
}
