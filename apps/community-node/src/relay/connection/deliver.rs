//! Events that are sent to the client.

use std::{pin::pin, time::Duration};

use futures_util::SinkExt as _;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{Connection, Disconnected};
use crate::relay::{event_frame::EventFrame, events::Published, subscriptions::SubscriptionId};

/// Time in which a client has to read an event while others wait for the bytes that it holds.
const STALLED: Duration = Duration::from_secs(1);

impl Connection {
    /// Sends an event, once for each matching subscription.
    pub(super) async fn deliver(&mut self, published: &Published) -> Result<(), Disconnected> {
        let wanting: Vec<SubscriptionId> = self.subscriptions.wanting(published).cloned().collect();
        // The author may have been denied in the meantime.
        if !wanting.is_empty() && self.relay.node.denies_author(published.event.author()) {
            return Ok(());
        }
        for id in &wanting {
            self.send_event(id, &published.event.json).await?;
        }
        Ok(())
    }

    /// Sends an event of one subscription, once there is room for it among those of all clients.
    pub(super) async fn send_event(
        &mut self,
        id: &SubscriptionId,
        event: &RawValue,
    ) -> Result<(), Disconnected> {
        let Self { relay, socket, is_mid_frame, .. } = self;
        let frame = EventFrame::new(id.as_str(), event);
        let _pending = relay.output.take(frame.len()).await;
        // Nothing of the library's own may be left, such as a part of a pong.
        socket.flush().await.map_err(|_| Disconnected)?;
        *is_mid_frame = true;
        let mut writing = pin!(frame.write_to(socket.get_mut()));
        loop {
            match timeout(STALLED, &mut writing).await {
                Ok(Ok(())) => break,
                // It reads too slowly, and holds what others need.
                Err(_) if relay.output.is_exhausted() => return Err(Disconnected),
                Err(_) => {}
                Ok(Err(_)) => return Err(Disconnected),
            }
        }
        *is_mid_frame = false;
        Ok(())
    }
}
