//! Java, for servers that need it.

use std::{env, path::PathBuf};

use crate::{Skip, skip::find_program};

/// A small heap, and only the fast compiler: tests are too short for the optimizing one.
pub(crate) const JVM: &[&str] = &[
    "-Xmx256m",
    "-Xshare:auto",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.net.preferIPv4Stack=true",
];

/// The program `java`: that of `JAVA_HOME`, or else the one on `PATH`.
pub(crate) fn find(component: &str) -> Result<PathBuf, Skip> {
    let java = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    match java.filter(|java| java.is_file()) {
        Some(java) => Ok(java),
        None => find_program("java").map_err(|_| Skip::new(component, "java is not on PATH")),
    }
}
