//! The `headgate` command.

mod attributes;
mod audit;
mod backup;
mod check;
mod client;
mod completions;
mod config;
mod diff;
mod doctor;
mod environment;
mod explain;
mod failure;
mod fields;
mod health;
mod holders;
mod import;
mod manual;
mod output;
mod overrides;
mod pages;
mod quota;
mod refund;
mod reservation;
mod reset;
mod rules;
mod run;
mod serve;
mod table;
mod unix_time;
mod usage;

use std::{io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// A request makes a few dozen small allocations, which take half the time of the system
/// allocator's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `--version` prints; `-V` prints the version alone.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("HEADGATE_BUILD_COMMIT"),
    ")\nfeatures: ",
    env!("HEADGATE_BUILD_FEATURES"),
    "\ntarget: ",
    env!("HEADGATE_BUILD_TARGET"),
);

/// Rate limits and quotas as a service, and tools to manage them.
#[derive(Debug, Parser)]
#[command(name = "headgate", version, long_version = LONG_VERSION, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Health(health::Health),
    Check(check::Check),
    Reserve(reservation::Reserve),
    Reservation(reservation::Show),
    Use(reservation::Use),
    Settle(reservation::Settle),
    Cancel(reservation::Cancel),
    Refund(refund::Refund),
    Run(run::Run),
    Holders(holders::Holders),
    Usage(usage::Usage),
    Explain(explain::Explain),
    Reset(reset::Reset),
    Rules(rules::Rules),
    Overrides(overrides::Overrides),
    Quota(quota::Quota),
    Audit(audit::Audit),
    Config(config::Config),
    Import(import::Import),
    Doctor(doctor::Doctor),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Completions(completions::Completions),
    #[command(hide = true)]
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return print_usage(&usage),
    };
    cli.command.run().unwrap_or_else(|failure| {
        if failure.is_broken_pipe() {
            return ExitCode::SUCCESS;
        }
        // If standard error is gone, too, there is nowhere to report it.
        let _ = writeln!(std::io::stderr(), "headgate: {failure}");
        ExitCode::FAILURE
    })
}

/// Prints help or a usage error. Clap would exit with 2, which means a denial here.
fn print_usage(usage: &clap::Error) -> ExitCode {
    let _ = usage.print();
    if usage.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Serve(serve) => Ok(serve.run()?),
            Self::Health(health) => health.run(),
            Self::Check(check) => check.run(),
            Self::Reserve(reserve) => reserve.run(),
            Self::Reservation(show) => show.run(),
            Self::Use(used) => used.run(),
            Self::Settle(settle) => settle.run(),
            Self::Cancel(cancel) => cancel.run(),
            Self::Refund(refund) => refund.run(),
            Self::Run(run) => Ok(run.run()),
            Self::Holders(holders) => holders.run(),
            Self::Usage(usage) => usage.run(),
            Self::Explain(explain) => explain.run(),
            Self::Reset(reset) => reset.run(),
            Self::Rules(rules) => rules.run(),
            Self::Overrides(overrides) => overrides.run(),
            Self::Quota(quota) => quota.run(),
            Self::Audit(audit) => audit.run(),
            Self::Config(config) => config.run(),
            Self::Import(import) => import.run(),
            Self::Doctor(doctor) => doctor.run(),
            Self::Backup(backup) => backup.run(),
            Self::Restore(restore) => restore.run(),
            Self::Completions(completions) => completions.run(),
            Self::Manual(manual) => manual.run(),
        }
    }
}
