//! A service that registers its kind of document, as an application does.

use std::{path::Path, time::Duration};

use headgate::Timestamp;
use headgate_persistence::{Database, DatabaseConfig, ServiceConfigDatabase};
use headgate_service_config::{Document, Kinds, LoadError, Reader, ServiceConfigRepository};

#[derive(Clone, Debug)]
struct Relay;

impl Document for Relay {
    const SERVICE: &'static str = "relay";

    fn read(reader: &mut Reader<'_>) -> Self {
        reader.section("rate_limit", |rates| {
            rates.section("ws", |ws| ws.number("events_per_minute", 1..=1_000_000, 120))
        });
        Self
    }

    fn safe_defaults(_: &LoadError) -> Self {
        Self
    }
}

/// The documents of the server with this data folder.
pub(super) fn documents(data: &Path) -> ServiceConfigDatabase {
    let config = DatabaseConfig::file(data.join("headgate.db"));
    Database::open(&config.connect_timeout(Duration::from_secs(60))).service_configs()
}

/// Registers the relay's documents.
pub(super) async fn register(documents: &ServiceConfigDatabase) {
    documents.register(&Kinds::new().with::<Relay>(), Timestamp::default()).await.unwrap();
}
