//! The Kong plugin: its Lua in nginx's access phase, with a real Headgate.

mod attributes;
mod denials;
mod faults;
mod gateway;
mod limits;
mod schema;
mod subjects;
mod tls;
