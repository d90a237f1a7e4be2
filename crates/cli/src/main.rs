//! The `headgate` command.

mod audit;
mod change;
mod check;
mod client;
mod config;
mod environment;
mod explain;
mod failure;
mod health;
mod import;
mod moment;
mod output;
mod quota;
mod reset;
mod rules;
mod serve;
mod table;
mod usage;
mod yaml;

use std::{io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// A request is a few dozen small allocations; this one makes them in half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    Health(health::Health),
    Check(check::Check),
    Usage(usage::Usage),
    Explain(explain::Explain),
    Reset(reset::Reset),
    Rules(rules::Rules),
    Quota(quota::Quota),
    Audit(audit::Audit),
    Config(config::Config),
    Import(import::Import),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return explain(&usage),
    };
    cli.command.run().unwrap_or_else(|failure| {
        if failure.is_enough() {
            return ExitCode::SUCCESS;
        }
        // Nobody is left to tell if standard error is gone too.
        let _ = writeln!(std::io::stderr(), "headgate: {failure}");
        ExitCode::FAILURE
    })
}

/// Help, or what was mistyped. Clap's own exit code for that is 2, which here means a denial.
fn explain(usage: &clap::Error) -> ExitCode {
    let _ = usage.print();
    if usage.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Serve(serve) => Ok(serve.run()?),
            Self::Health(health) => health.run(),
            Self::Check(check) => check.run(),
            Self::Usage(usage) => usage.run(),
            Self::Explain(explain) => explain.run(),
            Self::Reset(reset) => reset.run(),
            Self::Rules(rules) => rules.run(),
            Self::Quota(quota) => quota.run(),
            Self::Audit(audit) => audit.run(),
            Self::Config(config) => config.run(),
            Self::Import(import) => import.run(),
        }
    }
}
