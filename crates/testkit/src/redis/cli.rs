use std::{io, path::PathBuf, process::Command};

/// `redis-cli` for one server.
#[derive(Debug)]
pub(super) struct Cli {
    pub(super) program: PathBuf,
    pub(super) port: u16,
    pub(super) password: Option<String>,
}

// === impl Cli ===

impl Cli {
    /// The reply as text, also if it is an error; an error if the server cannot be reached.
    pub(super) fn ask(&self, command: &[&str]) -> io::Result<String> {
        let mut cli = Command::new(&self.program);
        cli.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]).args(command);
        if let Some(password) = &self.password {
            cli.env("REDISCLI_AUTH", password);
        }
        let output = cli.output()?;
        if !output.status.success() {
            return Err(io::Error::other(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        // One newline after a value, two after an error.
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }
}

/// The value of `name` among the `name:value` lines of `INFO` and `CLUSTER INFO`.
pub(crate) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .find_map(|(key, value)| (key == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_field_by_its_whole_name() {
        let info = "# Server\r\nold_process_id:1\r\nprocess_id:42\r\n";
        assert_eq!(field(info, "process_id"), Some("42"));
        assert_eq!(field(info, "process"), None);
    }
}
