//! How answers are printed.

use std::io::{self, Write};

use clap::ValueEnum;

use crate::client::Reply;

/// Whom the answer is printed for.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Table,
    /// For programs: as the server sent it.
    Json,
}

impl Output {
    /// Prints what the server sent, or what `table` makes of it.
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
}
