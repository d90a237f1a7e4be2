//! A document for tests.

use serde_json::Value;

use crate::{document::Document, reader::Reader, source::LoadError};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) events_per_minute: u64,
    enabled: bool,
    strict: bool,
    penalty: Option<u64>,
    note: Option<Value>,
}

impl Document for Sample {
    const SERVICE: &'static str = "relay";

    fn read(reader: &mut Reader<'_>) -> Self {
        let (enabled, events_per_minute) = reader.section("rate_limit", |rates| {
            let enabled = rates.flag("enabled", true);
            (enabled, rates.number("events_per_minute", 1..=1_000_000, 120))
        });
        Self {
            events_per_minute,
            enabled,
            strict: reader.choice("mode", ("off", false), &[("strict", true)]),
            penalty: reader
                .optional_section("penalty", |penalty| penalty.number("first", 1..=60, 10)),
            note: reader.any("note").cloned(),
        }
    }

    fn safe_defaults(_: &LoadError) -> Self {
        Self { events_per_minute: 30, enabled: true, strict: true, penalty: None, note: None }
    }
}
