//! A small posting API: an author may post once in five minutes, by address and by nickname.
//!
//! It shows how an application builds a cooldown into its own flow. Read in this order:
//!
//! | module | contents |
//! |---|---|
//! | [`publish`] | the flow: peek, validate, reserve, save, commit |
//! | [`cooldown`] | the limits, and the handling of denials and outages |
//! | [`claim`], [`identifier`] | the keys of a post's limits, as hashes |
//! | [`duplicates`] | detection of duplicate bodies: a second use of the same engine |
//! | [`post`] | posts, and their validation |
//! | [`posts`] | databases of posts: SQLite or DynamoDB |
//! | [`stores`], [`denials`] | stores of cooldowns: memory or DynamoDB, whose denials outlast an outage |
//! | [`rest`] | the API |
//! | [`config`], [`app`] | configuration and composition |

pub mod app;
pub mod claim;
pub mod config;
pub mod cooldown;
pub mod denials;
pub mod duplicates;
pub mod identifier;
mod invisible;
pub mod post;
pub mod posts;
pub mod publish;
pub mod rest;
pub mod stores;

pub use app::App;
pub use config::Config;
