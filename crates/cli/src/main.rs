//! The `headgate` command.

mod check;
mod client;
mod serve;

use std::{io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

/// May X do this now, and if not, when?
#[derive(Debug, Parser)]
#[command(name = "headgate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Check(check::Check),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return explain(&usage),
    };
    let outcome = match cli.command {
        Command::Serve(serve) => serve.run().map_err(Into::into),
        Command::Check(check) => check.run().map_err(Into::into),
    };
    outcome.unwrap_or_else(|error: Box<dyn std::error::Error>| {
        // Nobody is left to tell if standard error is gone too.
        let _ = writeln!(std::io::stderr(), "headgate: {error}");
        ExitCode::FAILURE
    })
}

/// Help, or what was mistyped. Clap's own exit code for that is 2, which here means a denial.
fn explain(usage: &clap::Error) -> ExitCode {
    let _ = usage.print();
    if usage.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
