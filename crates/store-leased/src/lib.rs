#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`LeasedStore`]: decides locally or asks the store |
//! | `fingerprint` | subjects as hashes |
//! | `recent` | the subjects that were seen lately |
//! | `holdings` | the subjects of which this process holds something, in bounded memory |
//! | `holding` | one subject: granted units, a remembered denial, its pace |
//! | `hand` | the units of one grant |
//! | `pace` | how many units a subject uses, and so how many are worth taking in advance |
//! | `flight` | one call under way for a subject; other requests wait for it |
//! | `returns` | giving back what is not used |
//! | `stats` | counters |

mod fingerprint;
mod flight;
mod hand;
mod holding;
mod holdings;
mod pace;
mod recent;
mod returns;
mod stats;
mod store;

pub use self::{stats::Stats, store::LeasedStore};
