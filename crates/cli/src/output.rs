//! Output formats.

use std::io::{self, Write};

use clap::ValueEnum;

use serde_json::json;

use crate::client::Reply;

/// Output format.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Output {
    /// Aligned text.
    Table,
    /// JSON as the server sent it.
    Json,
}

impl Output {
    /// Prints the response as it is, or what `table` writes.
    pub(crate) fn print(
        self,
        reply: &Reply,
        table: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match self {
            Self::Json => {
                out.write_all(&reply.body)?;
                writeln!(out)
            }
            Self::Table => table(&mut out),
        }
    }

    /// Prints that the object with this id was deleted.
    pub(crate) fn print_deleted(self, id: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        match self {
            Self::Table => writeln!(out, "deleted {id}"),
            Self::Json => writeln!(out, "{}", json!({ "deleted": id })),
        }
    }
}
