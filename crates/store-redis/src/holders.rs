//! The list of a concurrency limit's holders.

use headgate::{Check, Holders, LeaseId, StoreError, Timestamp, algorithm::concurrency::Holder};
use redis::{Value, cmd};

use crate::servers::Servers;

/// A script of its own: the one that decides does not grow by what only operators ask.
const SCRIPT: &str = include_str!("lua/holders.lua");

/// Lists at most `max` holders of the limit of `check`.
pub(crate) async fn list(
    servers: &Servers,
    check: Check<'_>,
    max: usize,
) -> Result<Holders, StoreError> {
    let name = check.key().to_string();
    let reply = servers.ask(&name, cmd("EVAL").arg(SCRIPT).arg(1).arg(&name).arg(max)).await?;
    read(&reply).ok_or_else(|| StoreError::Corrupt("malformed list of holders".to_owned()))
}

fn read(reply: &Value) -> Option<Holders> {
    let Value::Array(values) = reply else { return None };
    let [at, taken, total, listed @ ..] = &values[..] else { return None };
    let (listed, []) = listed.as_chunks::<3>() else { return None };
    Some(Holders {
        at: Timestamp::from_micros(number(at)?),
        taken: number(taken)?,
        total: number(total)?,
        first: listed.iter().map(holder).collect::<Option<_>>()?,
    })
}

fn holder([id, places, end]: &[Value; 3]) -> Option<Holder> {
    let Value::BulkString(id) = id else { return None };
    let id = u64::from_str_radix(str::from_utf8(id).ok()?, 16).ok()?;
    let places = u32::try_from(number(places)?).ok()?;
    Some(Holder { id: LeaseId::from(id), places, end: number(end)? })
}

fn number(value: &Value) -> Option<u64> {
    if let Value::Int(number) = value { u64::try_from(*number).ok() } else { None }
}
