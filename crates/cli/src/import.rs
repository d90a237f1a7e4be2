//! `headgate import`

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use headgate_config::Problem;
use headgate_server::envoy::{self, Conversion, Converted, Understood};
use thiserror::Error;

use crate::{
    failure::Failure,
    table::{Column, Table},
};

/// Bring limits along from other rate limit services of Envoy.
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how a file of envoyproxy/ratelimit is understood, or what is wrong with it.
    Envoy(Files),
    /// Convert a file of limitador's limits into one file for each namespace.
    Limitador(Limitador),
}

#[derive(Debug, Args)]
struct Limitador {
    #[command(flatten)]
    files: Files,
    /// Leave out limits that cannot be expressed, and list them on standard error.
    #[arg(long)]
    partial: bool,
}

#[derive(Debug, Args)]
struct Files {
    /// The file.
    file: PathBuf,
    /// Write what was understood into this folder, for `envoy.config_dir`.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Replace files that are there.
    #[arg(long, requires = "to")]
    force: bool,
}

/// Why nothing was written.
#[derive(Debug, Error)]
pub(crate) enum ImportError {
    #[error("{} is there already: use --force to replace it, or another folder", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {cause}", path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("cannot convert every limit; use --partial to leave these out:\n  {}", listed(.0))]
    Incomplete(Vec<Problem>),
    #[error("cannot convert any limit:\n  {}", listed(.0))]
    Nothing(Vec<Problem>),
}

fn listed(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n  ")
}

impl Import {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        match self.command {
            Command::Envoy(files) => files.envoy()?,
            Command::Limitador(limitador) => limitador.run()?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Limitador ===

impl Limitador {
    fn run(&self) -> Result<(), Failure> {
        let Conversion { files, left_out } = envoy::convert_limitador(&self.files.file)?;
        if !left_out.is_empty() && !self.partial {
            return Err(ImportError::Incomplete(left_out).into());
        }
        if !left_out.is_empty() && files.is_empty() {
            return Err(ImportError::Nothing(left_out).into());
        }
        match &self.files.to {
            Some(folder) => self.files.write(folder, &files)?,
            None => show(&files)?,
        }
        for problem in left_out {
            writeln!(io::stderr(), "left out: {problem}")?;
        }
        Ok(())
    }
}

// === impl Files ===

impl Files {
    fn envoy(&self) -> Result<(), Failure> {
        let limits = envoy::check(&self.file)?;
        print(&limits)?;
        let Some(folder) = &self.to else {
            return Ok(());
        };
        let yaml = fs::read_to_string(&self.file);
        let yaml =
            yaml.map_err(|cause| ImportError::Unreadable { path: self.file.clone(), cause })?;
        let domain = limits.first().map_or("domain", |limit| &limit.domain);
        self.write(folder, &[Converted { domain: domain.to_owned(), yaml }])
    }

    /// Nothing is written unless all can be.
    fn write(&self, folder: &Path, files: &[Converted]) -> Result<(), Failure> {
        let paths: Vec<PathBuf> =
            files.iter().map(|file| folder.join(name(&file.domain))).collect();
        if let Some(path) = paths.iter().find(|path| path.exists() && !self.force) {
            return Err(ImportError::Exists(path.clone()).into());
        }
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(folder).and_then(|()| fs::write(path, text))
        };
        for (path, file) in paths.iter().zip(files) {
            write(path, &file.yaml)
                .map_err(|cause| ImportError::Unwritable { path: path.clone(), cause })?;
            writeln!(io::stdout(), "wrote {}", path.display())?;
        }
        Ok(())
    }
}

fn print(limits: &[Understood]) -> io::Result<()> {
    let columns = ["DOMAIN", "DESCRIPTOR", "LIMIT", "ALGORITHM", "NOTES"].map(Column::Text);
    let mut table = Table::new(columns);
    for Understood { domain, descriptor, limit, algorithm, notes } in limits.iter().cloned() {
        table.row([domain, descriptor, limit, algorithm, notes]);
    }
    table.write(&mut io::stdout().lock())
}

/// Each as a document of its own.
fn show(files: &[Converted]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for file in files {
        write!(out, "---\n{}", file.yaml)?;
    }
    Ok(())
}

/// A file's name that holds nothing of a path.
fn name(domain: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = domain.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{}.yaml", name.trim_start_matches('.'))
}
