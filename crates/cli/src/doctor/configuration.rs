use std::path::Path;

use headgate_server::Config;

use super::report::Finding;
use crate::{
    config::problems,
    environment::{IgnoredVariable, ignored_variables, variables},
};

const AREA: &str = "configuration";

/// Loads the configuration. Returns `None` for an invalid one, with which nothing can be checked.
pub(super) fn check(file: Option<&Path>) -> (Option<Config>, Vec<Finding>) {
    let loaded = Config::load(file, variables())
        .and_then(|config| config.envoy.check_files().map(|()| config));
    let config = match loaded {
        Ok(config) => config,
        Err(error) => {
            let advice = "correct it: docs/configuration.md lists every key";
            let findings = problems(&error);
            let findings = findings.iter().map(|problem| Finding::error(AREA, problem, advice));
            return (None, findings.collect());
        }
    };
    let source = match file {
        Some(file) => format!("{} and the environment are valid", file.display()),
        None => "no file; the defaults and the environment are valid".to_owned(),
    };
    let mut findings = vec![Finding::ok(AREA, source)];
    findings.extend(ignored_variables(&config).into_iter().map(ignored));
    (Some(config), findings)
}

fn ignored(variable: IgnoredVariable) -> Finding {
    let IgnoredVariable { name, suggestion } = variable;
    let advice = suggestion.map_or_else(
        || "remove it, or write two underscores between the parts of a key".to_owned(),
        |other| format!("rename it to {other}, or remove it"),
    );
    Finding::warning(AREA, format!("the variable {name} is unknown and ignored"), advice)
}
