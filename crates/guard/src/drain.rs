//! Responses before the request body is read.
//!
//! Over HTTP/1, a server that responds without reading the body has to close the connection.
//! Closing it with unread bytes resets it, which can destroy the response in transit: proxies then
//! respond with 502. Therefore a short rest of the body is read and discarded before the response,
//! which keeps the connection alive. With a longer rest, the response is sent at once with
//! `connection: close`, and reading continues for a while so that the response arrives. HTTP/2
//! resets single streams and needs none of this.
//!
//! | module | contents |
//! |---|---|
//! | `unread` | [`UnreadBody`]: reads the rest of a body within bounds |
//! | `held` | [`HeldBody`]: a body that is returned when it is dropped unread |
//! | `layer` | [`DrainLayer`]: both, around any service |

mod held;
mod layer;
mod unread;

pub use self::{
    held::{Held, HeldBody},
    layer::{DrainFuture, DrainLayer, DrainService},
    unread::{Persistence, UnreadBody},
};
