//! Deliveries of an event.

use std::{collections::HashMap, sync::Arc};

use headgate::Timestamp;
use headgate_events::Events;
use headgate_quota::{LoggedEvent, QuotaEvent, RepositoryError};
use serde::Serialize;
use utoipa::ToSchema;

use super::EventDescription;
use crate::rest::time;

/// An event, with its deliveries if requested.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedEvent)]
pub(in crate::rest) struct WireEvent {
    #[serde(flatten)]
    #[schema(value_type = EventDescription)]
    event: QuotaEvent,
    /// All sinks in this server's configuration; only with `deliveries=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    deliveries: Option<Vec<WireDelivery>>,
}

/// Delivery of an event to one receiver.
#[derive(Serialize, ToSchema)]
#[schema(as = EventDelivery)]
pub(in crate::rest) struct WireDelivery {
    /// Name of the sink: `kafka`, or the address of a webhook.
    sink: String,
    delivered: bool,
    /// Time of the delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    delivered_at: Option<String>,
}

/// Adds the deliveries to the events.
pub(super) async fn with_deliveries(
    events: &Events,
    found: Vec<LoggedEvent>,
) -> Result<Vec<WireEvent>, RepositoryError> {
    let log = Arc::clone(events.log());
    let ids: Vec<&str> = found.iter().map(|logged| logged.event.event_id.as_str()).collect();
    let noted = if ids.is_empty() { Vec::new() } else { log.deliveries(&ids).await? };
    let noted: HashMap<(String, String), Timestamp> =
        noted.into_iter().map(|noted| ((noted.event_id, noted.sink), noted.at)).collect();
    let delivery = |event_id: &str, receiver: &headgate_events::Receiver| {
        let at = noted.get(&(event_id.to_owned(), receiver.name.clone()));
        WireDelivery {
            sink: receiver.display_name.clone(),
            delivered: at.is_some(),
            delivered_at: at.map(|at| time::text(*at)),
        }
    };
    let receivers = events.receivers();
    let event = |logged: LoggedEvent| {
        let deliveries =
            receivers.iter().map(|receiver| delivery(&logged.event.event_id, receiver)).collect();
        WireEvent { event: logged.event, deliveries: Some(deliveries) }
    };
    Ok(found.into_iter().map(event).collect())
}

/// The events without deliveries.
pub(super) fn alone(found: Vec<LoggedEvent>) -> Vec<WireEvent> {
    found.into_iter().map(|logged| WireEvent { event: logged.event, deliveries: None }).collect()
}
