//! A document with one limit.

use headgate_service_config::{Document, LoadError, Reader};

#[derive(Clone, Debug)]
pub(super) struct RelayDocument {
    pub(super) events_per_minute: u64,
}

impl Document for RelayDocument {
    const SERVICE: &'static str = "relay";

    fn read(reader: &mut Reader<'_>) -> Self {
        let events_per_minute = reader.section("rate_limit", |rates| {
            rates.section("ws", |ws| ws.number("events_per_minute", 1..=1_000_000, 120))
        });
        Self { events_per_minute }
    }

    fn safe_defaults(_: &LoadError) -> Self {
        Self { events_per_minute: 30 }
    }
}
