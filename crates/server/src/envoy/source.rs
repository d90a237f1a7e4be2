//! The files on disk.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use headgate_config::{ConfigError, Document, Problem};

use super::{domain::Domain, file::DomainFile};
use crate::config::EnvoyConfig;

/// Where domains are read from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Folder(PathBuf),
    File(PathBuf),
}

/// A file's path and its text.
pub(super) type Text = (PathBuf, Arc<str>);

/// Every domain by its name.
pub(super) type Domains = HashMap<String, Arc<Domain>>;

/// The domain of each file, with the text that it was compiled from.
pub(super) type Compiled = HashMap<PathBuf, (Arc<str>, Arc<Domain>)>;

/// A larger file is no configuration.
const MAX_BYTES: u64 = 1024 * 1024;

/// More files are somebody else's folder.
const MAX_FILES: usize = 1024;

// === impl Source ===

impl Source {
    /// Where `config` says that they are.
    pub(crate) fn of(config: &EnvoyConfig) -> Option<Self> {
        let folder = config.config_dir.clone().map(Self::Folder);
        folder.or_else(|| config.config_file.clone().map(Self::File))
    }

    pub(super) fn is_present(&self) -> bool {
        let (Self::Folder(path) | Self::File(path)) = self;
        path.exists()
    }

    /// The text of every file, in the order of their names.
    pub(super) fn read(&self) -> Result<Vec<Text>, ConfigError> {
        let paths = match self {
            Self::File(path) => vec![path.clone()],
            Self::Folder(folder) => listed(folder)?,
        };
        paths.into_iter().map(|path| Ok((path.clone(), text(&path)?.into()))).collect()
    }
}

/// The folder's YAML files, without those that mounted volumes hide.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let unreadable = |cause: io::Error| ConfigError::Unreadable { path: folder.into(), cause };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_yaml =
            path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_yaml && !hidden {
            paths.push(path);
        }
    }
    if paths.len() > MAX_FILES {
        return Err(unreadable(io::Error::other(format!(
            "it holds more than {MAX_FILES} YAML files"
        ))));
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |cause: io::Error| ConfigError::Unreadable { path: path.into(), cause };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(unreadable(io::Error::other(format!("it is larger than {MAX_BYTES} bytes"))));
    }
    Ok(text)
}

/// The domain that one file describes.
pub(super) fn domain((path, text): &Text) -> Result<Domain, ConfigError> {
    let document = Document::parse(path, text)?;
    let file: DomainFile = document.read()?;
    let mut problems = Vec::new();
    let domain = Domain::compile(&file, &mut problems);
    if problems.is_empty() {
        return Ok(domain);
    }
    Err(ConfigError::problems(
        problems.into_iter().map(|problem| document.locate(problem)).collect(),
    ))
}

/// Compiles every file; those whose text is the one in `known` are taken from there.
pub(super) fn compiled(texts: &[Text], known: &Compiled) -> Result<Compiled, ConfigError> {
    let compile = |text: &Text| {
        let (path, words) = text;
        let domain = match known.get(path).filter(|(before, _)| before == words) {
            Some((_, domain)) => Arc::clone(domain),
            None => Arc::new(domain(text)?),
        };
        Ok((path.clone(), (Arc::clone(words), domain)))
    };
    texts.iter().map(compile).collect()
}

/// What all files say together.
pub(super) fn domains(compiled: &Compiled) -> Result<Domains, ConfigError> {
    let files = compiled.iter().map(|(path, (_, domain))| (path.display().to_string(), domain));
    let mut files: Vec<(String, Arc<Domain>)> =
        files.map(|(path, domain)| (path, Arc::clone(domain))).collect();
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    together(files).map_err(|problem| ConfigError::problems(vec![problem]))
}

/// What domains say together, each with the name of the file or resource that it is from.
pub(super) fn together(named: Vec<(String, Arc<Domain>)>) -> Result<Domains, Problem> {
    let mut domains: HashMap<String, (String, Arc<Domain>)> = HashMap::new();
    for (from, domain) in named {
        if let Some((other, _)) = domains.get(&domain.name) {
            let message = format!(
                "{other} has the domain {:?} too: put all of its descriptors into one of them",
                domain.name
            );
            return Err(Problem::new(from, message));
        }
        domains.insert(domain.name.clone(), (from, domain));
    }
    Ok(domains.into_iter().map(|(name, (_, domain))| (name, domain)).collect())
}
