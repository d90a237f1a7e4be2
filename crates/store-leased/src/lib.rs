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
//! | `answer` | the last answer of the store about a subject |
//! | `denial` | a denial that is repeated without asking the store |
//! | `hand` | the units of one grant |
//! | `taken` | units taken for a batch that is not decided yet |
//! | `pace` | how many units a subject uses, and so how many are worth taking in advance |
//! | `refill` | asking for more while some units are left |
//! | `flight` | one call under way for a subject; other requests wait for it |
//! | `returns` | giving back what is not used |
//! | `stats` | counters |

mod answer;
mod denial;
mod fingerprint;
mod flight;
mod hand;
mod holding;
mod holdings;
mod pace;
mod recent;
mod refill;
mod returns;
mod stats;
mod store;
mod taken;

pub use self::{stats::Stats, store::LeasedStore};
