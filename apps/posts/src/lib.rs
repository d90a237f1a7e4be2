//! A small posting API: everybody may post once in five minutes, by address and by nickname.
//!
//! It shows how an application puts a cooldown into its own flow. Read in this order:
//!
//! | module | what it owns |
//! |---|---|
//! | [`publish`] | the flow: look, validate, reserve, save, commit |
//! | [`cooldown`] | the limits, and what a refusal or an outage means |
//! | [`claim`], [`identifier`] | what a post takes, under names that tell nobody who it is |
//! | [`duplicates`] | when two bodies are the same: the second use of the same engine |
//! | [`post`] | what a post says, and when it is one |
//! | [`posts`] | who keeps posts: SQLite or DynamoDB |
//! | [`stores`] | who keeps cooldowns: this process or DynamoDB |
//! | [`rest`] | the API |
//! | [`config`], [`app`] | what the environment says, and how it all fits together |

pub mod app;
pub mod claim;
pub mod config;
pub mod cooldown;
pub mod duplicates;
pub mod identifier;
pub mod post;
pub mod posts;
pub mod publish;
pub mod rest;
pub mod stores;

pub use app::App;
pub use config::Config;
