//! An event of a subscription, as a WebSocket frame.

use std::io;

use serde_json::value::RawValue;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::protocol::frame::{
    FrameHeader,
    coding::{Data, OpCode},
};

/// Largest event that is copied after the head of its frame, to be written with it.
const COPIED_BYTES: usize = 8_192;

/// An event of a subscription, as a WebSocket frame. The event is written from where it is stored:
/// the WebSocket library would copy it for each subscription of each client, and keep the memory of
/// the largest one for as long as the client is connected.
#[derive(Debug)]
pub(super) struct EventFrame<'e> {
    /// The frame up to the event.
    head: Vec<u8>,
    event: &'e str,
}

/// Maximum size of the header of a frame without a mask.
const HEADER_BYTES: usize = 10;

/// End of the message.
const TAIL: &[u8] = b"]";

// === impl EventFrame ===

impl<'e> EventFrame<'e> {
    /// Frame with an event of the subscription `id`.
    pub(super) fn new(id: &str, event: &'e RawValue) -> Self {
        let event = event.get();
        // A string can always be serialized, and written to memory.
        let id = serde_json::to_string(id).unwrap_or_default();
        let start = format!(r#"["EVENT",{id},"#);
        let length = start.len() + event.len() + TAIL.len();
        let opcode = OpCode::Data(Data::Text);
        let header = FrameHeader { is_final: true, opcode, ..FrameHeader::default() };
        let mut head = Vec::with_capacity(HEADER_BYTES + start.len());
        let _ = header.format(length as u64, &mut head);
        head.extend(start.as_bytes());
        Self { head, event }
    }

    /// Size of the frame.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.event.len() + TAIL.len()
    }

    /// Writes the frame. If this is cancelled, a part of it may have been written.
    pub(super) async fn write_to(
        mut self,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        if self.event.len() <= COPIED_BYTES {
            self.head.extend(self.event.as_bytes());
            self.head.extend(TAIL);
            stream.write_all(&self.head).await?;
        } else {
            stream.write_all(&self.head).await?;
            stream.write_all(self.event.as_bytes()).await?;
            stream.write_all(TAIL).await?;
        }
        stream.flush().await
    }
}

#[cfg(test)]
mod tests {
    use tokio_tungstenite::tungstenite::{Message, protocol::frame::Frame};

    use super::*;

    #[tokio::test]
    async fn a_frame_is_what_the_library_writes() {
        for size in [0, 80, 200, COPIED_BYTES, 70_000] {
            let event = format!(r#"{{"content":"{}"}}"#, "x".repeat(size));
            let text = format!(r#"["EVENT","a\"b",{event}]"#);
            let event = RawValue::from_string(event).unwrap();
            let frame = EventFrame::new("a\"b", &event);
            let (length, mut written) = (frame.len(), Vec::new());
            frame.write_to(&mut written).await.unwrap();
            let opcode = OpCode::Data(Data::Text);
            let mut expected = Vec::new();
            let whole = Frame::message(Message::text(text).into_data(), opcode, true);
            whole.format(&mut expected).unwrap();
            assert!(written == expected, "{size}");
            assert_eq!(length, written.len());
        }
    }
}
