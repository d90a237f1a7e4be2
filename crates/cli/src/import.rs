//! `headgate import`

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use headgate_config::Problem;
use headgate_envoy::{Conversion, ConvertedFile, EntrySummary, FileSummary, RulesConversion};
use thiserror::Error;

use crate::{
    failure::Failure,
    table::{Column, Table},
};

/// Import limits from other rate limit services for Envoy.
#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how a configuration file of envoyproxy/ratelimit is interpreted, or what is invalid.
    Envoy(Files),
    /// Convert a limits file of limitador into one file per namespace, or into rules.
    Limitador(Limitador),
}

#[derive(Debug, Args)]
struct Limitador {
    #[command(flatten)]
    files: Files,
    /// Convert to rules over attributes, a file for `headgate rules apply`.
    #[arg(long)]
    rules: bool,
    /// Skip limits that cannot be converted, and list them on standard error.
    #[arg(long)]
    partial: bool,
}

#[derive(Debug, Args)]
struct Files {
    /// File to import.
    file: PathBuf,
    /// Write the result into this folder, for `envoy.config_dir`; with rules, as `rules.yaml`.
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Overwrite existing files.
    #[arg(long, requires = "to")]
    force: bool,
}

/// An error of an import.
#[derive(Debug, Error)]
pub(crate) enum ImportError {
    #[error("{} already exists; pass --force to overwrite it, or choose another folder", .0.display())]
    Exists(PathBuf),
    #[error("cannot write {}: {cause}", path.display())]
    Unwritable { path: PathBuf, cause: io::Error },
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("cannot convert every limit; pass --partial to skip these:\n  {}", listed(.0))]
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
        let (files, skipped) = self.convert()?;
        if !skipped.is_empty() && !self.partial {
            return Err(ImportError::Incomplete(skipped).into());
        }
        if !skipped.is_empty() && files.is_empty() {
            return Err(ImportError::Nothing(skipped).into());
        }
        match (&self.files.to, &files[..]) {
            (Some(folder), files) => self.files.write(folder, files)?,
            (None, [rules]) if self.rules => io::stdout().write_all(rules.yaml.as_bytes())?,
            (None, files) => print_yaml(files)?,
        }
        for problem in skipped {
            writeln!(io::stderr(), "skipped: {problem}")?;
        }
        Ok(())
    }

    /// Returns the converted files, and what is not in them.
    fn convert(&self) -> Result<(Vec<ConvertedFile>, Vec<Problem>), Failure> {
        if !self.rules {
            let Conversion { files, skipped } =
                headgate_envoy::convert_limitador(&self.files.file)?;
            return Ok((files, skipped));
        }
        let RulesConversion { yaml, rules, skipped } =
            headgate_envoy::convert_limitador_to_rules(&self.files.file)?;
        let file = ConvertedFile { domain: "rules".to_owned(), yaml };
        // A file without rules is not written, if there was something to convert.
        let files = if rules == 0 && !skipped.is_empty() { Vec::new() } else { vec![file] };
        Ok((files, skipped))
    }
}

// === impl Files ===

impl Files {
    fn envoy(&self) -> Result<(), Failure> {
        let summary = headgate_envoy::summarize(&self.file)?;
        print(&summary)?;
        let Some(folder) = &self.to else {
            return Ok(());
        };
        let yaml = fs::read_to_string(&self.file);
        let yaml =
            yaml.map_err(|cause| ImportError::Unreadable { path: self.file.clone(), cause })?;
        self.write(folder, &[ConvertedFile { domain: summary.domain, yaml }])
    }

    /// Writes nothing if one of the files exists.
    fn write(&self, folder: &Path, files: &[ConvertedFile]) -> Result<(), Failure> {
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

fn print(FileSummary { domain, entries }: &FileSummary) -> io::Result<()> {
    let columns = ["DOMAIN", "DESCRIPTOR", "LIMIT", "ALGORITHM", "NOTES"].map(Column::Text);
    let mut table = Table::new(columns);
    for EntrySummary { descriptor, limit, algorithm, notes } in entries.iter().cloned() {
        table.row([domain.clone(), descriptor, limit, algorithm, notes]);
    }
    table.write(&mut io::stdout().lock())
}

/// Prints each file as a YAML document.
fn print_yaml(files: &[ConvertedFile]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for file in files {
        write!(out, "---\n{}", file.yaml)?;
    }
    Ok(())
}

/// Returns a file name without path separators.
fn name(domain: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = domain.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("{}.yaml", name.trim_start_matches('.'))
}
