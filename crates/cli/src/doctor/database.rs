use headgate::Clock;
use headgate_persistence::{Database, DatabaseInspection, SchemaVersion};
use headgate_server::Config;

use super::{report::Finding, skew};

const AREA: &str = "database";

pub(super) async fn check(config: &Config, clock: &dyn Clock) -> Vec<Finding> {
    let target = match config.database.target(&config.server.data_dir) {
        Ok(target) => target,
        Err(problem) => return vec![Finding::error(AREA, problem.to_string(), "correct the key")],
    };
    let name = match target.file_path() {
        Ok(path) if !path.exists() => {
            let message =
                format!("{} does not exist yet; the first start creates it", path.display());
            return vec![Finding::ok(AREA, message)];
        }
        Ok(path) => path.display().to_string(),
        Err(_) => config.database.host.clone().unwrap_or_else(|| "the database".to_owned()),
    };
    let database = Database::open(&target.max_connections(1));
    let inspected = database.inspect(clock).await;
    database.close().await;
    match inspected {
        Ok(inspection) => findings(&name, inspection),
        Err(error) => {
            let error = error.to_string();
            vec![Finding::error(AREA, format!("{name}: {error}"), advice_for(&error))]
        }
    }
}

fn findings(name: &str, inspection: DatabaseInspection) -> Vec<Finding> {
    let DatabaseInspection {
        product,
        schema,
        clock_ahead,
        poor_encoding,
        missing_privileges,
        write_error,
        ..
    } = inspection;
    let mut findings = vec![Finding::ok(AREA, format!("{name} answers ({product})"))];
    findings.push(schema_finding(schema));
    findings.extend(write_error.map(|error| {
        let advice = "free disk space, make the file writable for this user, or connect to the \
                      primary";
        Finding::error(AREA, format!("{name} refuses writes: {error}"), advice)
    }));
    findings.extend(poor_encoding.map(|encoding| {
        let message =
            format!("{name} has the encoding {encoding} and refuses characters outside it");
        let advice = "create a database with ENCODING 'UTF8' and move the tables there (pg_dump)";
        Finding::error(AREA, message, advice)
    }));
    if !missing_privileges.is_empty() {
        findings.push(Finding::error(
            AREA,
            format!("privileges are missing: {}", missing_privileges.join("; ")),
            "grant them, or let this user own the tables; see docs/guides/upgrades.md",
        ));
    }
    findings.extend(skew(AREA, name, clock_ahead));
    findings
}

fn schema_finding(schema: Option<SchemaVersion>) -> Finding {
    let Some(schema) = schema else {
        return Finding::ok(AREA, "there are no tables yet; the first start creates them");
    };
    let SchemaVersion { applied, known } = schema;
    if schema.is_too_new() {
        let message = format!(
            "the tables have version {applied}; this program knows {known} and refuses them"
        );
        return Finding::error(AREA, message, "use the program of a newer release");
    }
    if schema.is_newer() {
        let message = format!(
            "the tables have version {applied}; this program knows {known} and tolerates it"
        );
        return Finding::warning(
            AREA,
            message,
            "finish the upgrade: use the newer release here, too",
        );
    }
    let message = if applied < known {
        format!("the tables have version {applied}; the next start upgrades them to {known}")
    } else {
        format!("the tables have version {applied}, the newest that this program knows")
    };
    Finding::ok(AREA, message)
}

fn advice_for(error: &str) -> &'static str {
    if error.contains("password") || error.contains("role") || error.contains("authentication") {
        "check user and password in database.url, database.user or database.password"
    } else if error.contains("does not exist") {
        "create the database, or correct its name"
    } else if error.contains("certificate") || error.contains("TLS") {
        "check the SSL mode and the certificates of the database"
    } else {
        "check database.url, that the database runs there, and that the network lets this machine \
         reach it"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::Level;

    #[test]
    fn a_newer_schema_is_a_warning_and_a_too_new_one_an_error() {
        let level = |applied| schema_finding(Some(SchemaVersion { applied, known: 7 })).level;
        assert_eq!([6, 7, 8, 9].map(level), [Level::Ok, Level::Ok, Level::Warning, Level::Error]);
        assert_eq!(schema_finding(None).level, Level::Ok);
    }
}
