//! The document of the first contact: what everybody may read before knowing anybody.

use serde_json::{Map, Value};

use crate::{
    auth::AuthSettings, document::Document, reader::Reader, source::Doubt, user_api::PER_MINUTE,
};

/// What bootstrap runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct BootstrapDocument {
    /// Whether clients must say who they are.
    pub auth: AuthSettings,
    /// What this node says of itself, if it does.
    pub descriptor: Option<Value>,
    /// Until when that holds, as the node's owner wrote it.
    pub exp: Option<Value>,
    /// Other nodes.
    pub nodes: Vec<Value>,
    /// The latest hint, if there is one.
    pub hint: Option<Value>,
    /// What is offered for each topic.
    pub topics: Map<String, Value>,
    /// Calls of an address in a minute, where it is not the user API's number of public calls. It
    /// cannot be switched off.
    pub by_ip: Option<u64>,
}

/// The most nodes, topics, and services of a topic.
const MAX_ITEMS: usize = 500;

impl Document for BootstrapDocument {
    const SERVICE: &'static str = "bootstrap";

    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            auth: reader.section("auth", |auth| AuthSettings::read(auth, false)),
            descriptor: reader.anything("descriptor").cloned(),
            exp: reader.anything("exp").cloned(),
            nodes: items(reader, "nodes"),
            hint: reader.anything("hint").cloned(),
            topics: topics(reader),
            by_ip: reader
                .section("rate_limit", |section| section.optional_number("by_ip", PER_MINUTE)),
        }
    }

    fn safe(doubt: &Doubt) -> Self {
        Self {
            auth: doubt.auth(),
            descriptor: None,
            exp: None,
            nodes: Vec::new(),
            hint: None,
            topics: Map::new(),
            // Without a document the user API's number holds, which may be a safe one itself.
            by_ip: (*doubt != Doubt::Missing).then_some(30),
        }
    }
}

impl Default for BootstrapDocument {
    fn default() -> Self {
        Self::read(&mut Reader::new(None, String::new()))
    }
}

fn items(reader: &mut Reader<'_>, name: &'static str) -> Vec<Value> {
    match reader.take(name) {
        None => Vec::new(),
        Some(Value::Array(items)) if items.len() <= MAX_ITEMS => items.clone(),
        Some(_) => {
            reader.note(name, format!("must be a list of at most {MAX_ITEMS}"));
            Vec::new()
        }
    }
}

fn topics(reader: &mut Reader<'_>) -> Map<String, Value> {
    let is_list = |value: &Value| value.as_array().is_some_and(|list| list.len() <= MAX_ITEMS);
    match reader.take("topics") {
        None => Map::new(),
        Some(Value::Object(topics))
            if topics.len() <= MAX_ITEMS && topics.values().all(is_list) =>
        {
            topics.clone()
        }
        Some(_) => {
            let message = format!("must be an object of at most {MAX_ITEMS} lists of services");
            reader.note("topics", message);
            Map::new()
        }
    }
}
