//! The domains that files describe.

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use headgate_config::{ConfigError, Problem, YamlDocument};

use crate::{domain::Domain, file::DomainFile, source::SourceFile};

/// Every domain by its name.
pub(crate) type Domains = HashMap<String, Arc<Domain>>;

/// The domain of each file, with the text that it was compiled from.
pub(crate) type CompiledFiles = HashMap<PathBuf, (Arc<str>, Arc<Domain>)>;

/// Maximum number of problems in an error, which readiness shows and the log repeats.
const MAX_PROBLEMS: usize = 50;

/// Compiles one file.
///
/// # Errors
///
/// Returns everything that is wrong with it.
pub(crate) fn compile(file: &SourceFile) -> Result<Domain, ConfigError> {
    let document = YamlDocument::parse(&file.path, &file.text)?;
    let (read, mut problems) = document.read_all::<DomainFile>();
    let mut invalid = Vec::new();
    let domain = read.map(|file| Domain::compile(&file, &mut invalid));
    // An unreadable value is also reported as missing: report it once.
    let is_new = |problem: &Problem| !problems.iter().any(|known| known.overlaps(problem));
    let invalid: Vec<Problem> = invalid.into_iter().filter(is_new).collect();
    problems.extend(invalid.into_iter().map(|problem| document.locate(problem)));
    match domain {
        Some(domain) if problems.is_empty() => Ok(domain),
        _ => Err(ConfigError::problems(problems)),
    }
}

/// Compiles every file, except those whose text is the one in `known`.
///
/// # Errors
///
/// Returns everything that is wrong with any of them.
pub(crate) fn compile_all(
    files: &[SourceFile],
    known: &CompiledFiles,
) -> Result<(CompiledFiles, Domains), ConfigError> {
    let compile = |file: &SourceFile| {
        let domain = match known.get(&file.path).filter(|(text, _)| *text == file.text) {
            Some((_, domain)) => Arc::clone(domain),
            None => Arc::new(compile(file)?),
        };
        Ok((file.path.clone(), (Arc::clone(&file.text), domain)))
    };
    let compiled: CompiledFiles = all_or_problems(files.iter().map(compile))?;
    let named = files.iter().map(|file| {
        let (_, domain) = &compiled[&file.path];
        (file.path.display().to_string(), Arc::clone(domain))
    });
    let domains = merge(named).map_err(bounded)?;
    Ok((compiled, domains))
}

fn bounded(mut problems: Vec<Problem>) -> ConfigError {
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    if more > 0 {
        problems.push(Problem::new("not listed", format!("{more} more problems")));
    }
    ConfigError::Problems(problems)
}

/// Returns domains by their names, each given with the file or resource that it is from.
///
/// # Errors
///
/// Returns every domain that occurs twice.
pub(crate) fn merge(
    named: impl IntoIterator<Item = (String, Arc<Domain>)>,
) -> Result<Domains, Vec<Problem>> {
    let mut domains: HashMap<String, (String, Arc<Domain>)> = HashMap::new();
    let mut problems = Vec::new();
    for (origin, domain) in named {
        match domains.get(&domain.name) {
            Some((first, _)) => {
                let message = format!(
                    "duplicate domain {:?}, also in {first}: put all of its descriptors into one \
                     of them",
                    domain.name
                );
                problems.push(Problem::new(origin, message));
            }
            None => drop(domains.insert(domain.name.clone(), (origin, domain))),
        }
    }
    if problems.is_empty() {
        return Ok(domains.into_iter().map(|(name, (_, domain))| (name, domain)).collect());
    }
    Err(problems)
}

/// Collects all successful results, or the problems of all failed ones.
pub(crate) fn all_or_problems<T, C: FromIterator<T>>(
    results: impl Iterator<Item = Result<T, ConfigError>>,
) -> Result<C, ConfigError> {
    let mut errors = Vec::new();
    let collected = results.filter_map(|result| result.map_err(|error| errors.push(error)).ok());
    let collected = collected.collect();
    match errors.pop() {
        None => Ok(collected),
        Some(error) if errors.is_empty() && !matches!(error, ConfigError::Problems(_)) => {
            Err(error)
        }
        Some(last) => {
            errors.push(last);
            Err(bounded(errors.into_iter().flat_map(ConfigError::into_problems).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(files: &[SourceFile]) -> String {
        compile_all(files, &CompiledFiles::new()).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_of_all_files_are_reported_together() {
        let files = [
            SourceFile::new("a.yaml", "domain: a\ndescriptors: [{key: k, kee: k}, {value: v}]"),
            SourceFile::new("b.yaml", "domain: [\n"),
            SourceFile::new("c.yaml", "domain: c"),
            SourceFile::new("d.yaml", "descriptors: []"),
        ];
        let error = error(&files);
        let lines: Vec<&str> = error.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 5, "{error}");
        assert_eq!(lines[0], "invalid configuration:");
        assert!(lines[1].starts_with("descriptors[0].kee (a.yaml:2): unknown key"), "{error}");
        assert_eq!(lines[2], "descriptors[1].key (a.yaml:2): missing");
        assert!(lines[3].starts_with("b.yaml:"), "{error}");
        assert_eq!(lines[4], "domain (d.yaml:1): missing");
    }

    #[test]
    fn every_duplicate_domain_is_reported() {
        let file = |name: &str| SourceFile::new(name, "domain: same");
        let error = error(&[file("a.yaml"), file("b.yaml"), file("c.yaml")]);
        for name in ["b.yaml", "c.yaml"] {
            let expected = format!("{name}: duplicate domain \"same\", also in a.yaml");
            assert!(error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn the_number_of_problems_is_bounded() {
        let entries = "  - {key: k}\n".repeat(MAX_PROBLEMS + 8);
        let error =
            error(&[SourceFile::new("a.yaml", &format!("domain: a\ndescriptors:\n{entries}"))]);
        assert_eq!(error.lines().count(), 1 + MAX_PROBLEMS + 1, "{error}");
        assert!(error.ends_with("not listed: 7 more problems"), "{error}");
    }
}
