use std::{
    path::Path,
    process::{Command, Stdio},
};

/// Runs SQL. Returns the rows as text, or the error message of `psql`.
pub(super) fn ask(psql: &Path, url: &str, sql: &str) -> Result<String, String> {
    let output = Command::new(psql)
        // No user settings, no header, no command tags, no password prompt.
        .args(["-X", "-A", "-t", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
        .env("PGCONNECT_TIMEOUT", "60")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
}
