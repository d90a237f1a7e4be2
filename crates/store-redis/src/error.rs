//! Classification of errors that Redis replies with.

use std::sync::Arc;

use headgate::StoreError;

use crate::{connection::CallError, reply::ServerError};

/// Class of an error, by what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The script is not loaded: send it in full.
    NoScript,
    /// The slot belongs to the node at this address.
    Moved(String),
    /// This one call belongs to the node at this address.
    Ask(String),
    /// The keys of the call are being moved to another node: try again.
    TryAgain,
    /// The server has no memory for another key.
    OutOfMemory,
    /// The server is no longer a master, or requires authentication: reconnect.
    NotMaster,
    /// The server cannot serve any call now.
    Unavailable,
    /// The server rejects this call, but may serve others.
    Rejected,
    /// The key holds a value that this store has not written.
    Corrupt,
}

impl ErrorClass {
    pub(crate) fn of(error: &ServerError) -> Self {
        let address = || error.text().split(' ').nth(2).unwrap_or_default().to_owned();
        match error.code() {
            "NOSCRIPT" => Self::NoScript,
            "MOVED" => Self::Moved(address()),
            "ASK" => Self::Ask(address()),
            "TRYAGAIN" => Self::TryAgain,
            "OOM" => Self::OutOfMemory,
            // A replica that was a master, or one that lost its master; or a server that requires
            // authentication, which a new connection performs.
            "READONLY" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS" => Self::NotMaster,
            "CLUSTERDOWN" if error.text().contains("slot not served") => Self::Rejected,
            "LOADING" | "CLUSTERDOWN" | "BUSY" | "UNKILLABLE" | "DENIED" => Self::Unavailable,
            "WRONGTYPE" => Self::Corrupt,
            "ERR" => Self::of_script(error.text()),
            // NOPERM, MISCONF, NOREPLICAS and unknown codes: Redis is up and replies.
            _ => Self::Rejected,
        }
    }

    /// Before Redis 7, an error in a script is an `ERR` with the cause somewhere in the text.
    fn of_script(text: &str) -> Self {
        let has = |word: &str| text.contains(word);
        if has("OOM command not allowed") {
            Self::OutOfMemory
        } else if has("READONLY You can't write against a read only") {
            Self::NotMaster
        } else if has("MISCONF") || has("NOREPLICAS") || has("NOPERM") || lacks_command(text) {
            Self::Rejected
        } else {
            // The scripts fail only on values that they have not written.
            Self::Corrupt
        }
    }
}

/// Returns `true` if the server lacks a command that is needed.
fn lacks_command(text: &str) -> bool {
    text.starts_with("ERR unknown command") || text.starts_with("ERR unknown subcommand")
}

/// Converts an error for the engine.
pub(crate) fn store_error(error: CallError, timeout: std::time::Duration) -> StoreError {
    let error = match error {
        CallError::Timeout => return StoreError::Timeout(timeout),
        CallError::Full => return StoreError::Overloaded,
        error @ CallError::Closed(_) => return StoreError::unavailable(error),
        CallError::Server(error) => error,
    };
    match ErrorClass::of(&error) {
        ErrorClass::Corrupt => StoreError::Corrupt(error.to_string()),
        ErrorClass::Rejected | ErrorClass::OutOfMemory | ErrorClass::TryAgain => {
            StoreError::Refused(error.to_string())
        }
        ErrorClass::NoScript
        | ErrorClass::Moved(_)
        | ErrorClass::Ask(_)
        | ErrorClass::NotMaster
        | ErrorClass::Unavailable => StoreError::Unavailable(Arc::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified_by_code_and_text() {
        for (text, class) in [
            ("NOSCRIPT No matching script. Please use EVAL.", ErrorClass::NoScript),
            ("MOVED 866 127.0.0.1:7001", ErrorClass::Moved("127.0.0.1:7001".into())),
            ("ASK 866 [::1]:7001", ErrorClass::Ask("[::1]:7001".into())),
            ("TRYAGAIN Multiple keys request during rehashing of slot", ErrorClass::TryAgain),
            ("OOM command not allowed when used memory > 'maxmemory'.", ErrorClass::OutOfMemory),
            (
                "ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -OOM \
                 command not allowed when used memory > 'maxmemory'.",
                ErrorClass::OutOfMemory,
            ),
            ("READONLY You can't write against a read only replica.", ErrorClass::NotMaster),
            ("NOAUTH Authentication required.", ErrorClass::NotMaster),
            ("LOADING Redis is loading the dataset in memory", ErrorClass::Unavailable),
            ("BUSY Redis is busy running a script.", ErrorClass::Unavailable),
            ("CLUSTERDOWN The cluster is down", ErrorClass::Unavailable),
            ("CLUSTERDOWN Hash slot not served", ErrorClass::Rejected),
            ("WRONGTYPE Operation against a key holding the wrong kind", ErrorClass::Corrupt),
            ("ERR user_script:60: attempt to perform arithmetic", ErrorClass::Corrupt),
            ("ERR unknown command 'EVALSHA'", ErrorClass::Rejected),
            ("NOPERM No permissions to access a key", ErrorClass::Rejected),
            ("MISCONF Redis is configured to save RDB snapshots", ErrorClass::Rejected),
            ("NOREPLICAS Not enough good replicas to write.", ErrorClass::Rejected),
            ("SOMETHING new", ErrorClass::Rejected),
        ] {
            assert_eq!(ErrorClass::of(&ServerError::new(text)), class, "{text}");
        }
    }
}
