//! Refusals that come before a request's body was read.
//!
//! Over HTTP/1, a server that answers without reading the body has to close the connection, and
//! closing it with bytes unread resets it, which can destroy the answer on its way: proxies then say
//! 502. So a short rest is read and dropped before the answer, which keeps the connection alive. A
//! longer one is answered at once with `connection: close`, and read for a moment longer so that the
//! answer arrives. HTTP/2 ends single streams and needs none of this.
//!
//! | module | what it owns |
//! |---|---|
//! | `unread` | [`UnreadBody`]: reads a rest within bounds |
//! | `held` | [`HeldBody`]: a body that comes back when it is dropped unread |
//! | `layer` | [`DrainLayer`]: both, around any service |

mod held;
mod layer;
mod unread;

pub use self::{
    held::{Held, HeldBody},
    layer::{DrainFuture, DrainLayer, DrainService},
    unread::{Persistence, UnreadBody},
};
