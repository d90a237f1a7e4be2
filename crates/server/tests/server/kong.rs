//! The Kong plugin's own Lua, in nginx's access phase, before a real server.

mod faults;
mod gateway;
mod limits;
mod schema;
mod subjects;
mod tls;
