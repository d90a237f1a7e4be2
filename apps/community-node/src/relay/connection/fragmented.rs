//! Messages in several frames.

use headgate_guard::MessageKind;
use tokio_tungstenite::tungstenite::Message;

use super::{Connection, Disconnected, Entry};
use crate::relay::{frame::FrameKind, reply::Reply};

impl Connection {
    /// Counts the frames of `message` after the first. Returns true if the message is admitted;
    /// otherwise it was refused.
    pub(super) async fn admits_fragments(
        &mut self,
        message: &Message,
    ) -> Result<bool, Disconnected> {
        // Control frames may come between those of a message, which is counted once it is complete.
        if !matches!(message, Message::Text(_) | Message::Binary(_)) {
            return Ok(true);
        }
        for _ in 0..self.socket.get_mut().take_fragments() {
            match self.enter(MessageKind::Other).await? {
                Entry::Admitted => {}
                Entry::Refused(reason) => {
                    return self.refuse_message(message, &reason).await.map(|()| false);
                }
                Entry::Dropped => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Refuses a message as if it had come in one frame, so that the client gets the answer to its
    /// event or subscription.
    async fn refuse_message(
        &mut self,
        message: &Message,
        reason: &str,
    ) -> Result<(), Disconnected> {
        let Message::Text(text) = message else {
            return self.reply(Reply::Notice(reason)).await;
        };
        let frame = text.as_str();
        match FrameKind::of(frame) {
            FrameKind::Event => self.refuse_event(frame, reason).await,
            FrameKind::Req => self.refuse_req(frame, reason).await,
            FrameKind::Auth => self.refuse_auth(frame, reason).await,
            FrameKind::Close | FrameKind::Unknown | FrameKind::Malformed => {
                self.reply(Reply::Notice(reason)).await
            }
        }
    }
}
