//! The sections of the configuration that belong to the stores.

mod memory;
mod redis;

pub use self::{
    memory::MemoryConfig,
    redis::{KeyPrefix, RedisConfig},
};
