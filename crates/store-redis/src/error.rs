//! What Redis's errors mean: trouble of a server, of a key, or of a moment.

use std::sync::Arc;

use headgate::StoreError;

use crate::{connection::CallError, reply::ServerError};

/// What is to be done about an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The script is not loaded: send it in full.
    NoScript,
    /// The slot belongs to the node at this address.
    Moved(String),
    /// This one call belongs to the node at this address.
    Ask(String),
    /// The keys of the call are being moved to another node: try again.
    TryAgain,
    /// There is no memory left for another subject.
    Full,
    /// The server is no master any more: connect anew.
    Demoted,
    /// The server cannot answer anybody now.
    Away,
    /// The server will not do this, but may do other things.
    Refused,
    /// What the key holds is not ours.
    Corrupt,
}

impl Meaning {
    pub(crate) fn of(error: &ServerError) -> Self {
        let address = || error.text().split(' ').nth(2).unwrap_or_default().to_owned();
        match error.code() {
            "NOSCRIPT" => Self::NoScript,
            "MOVED" => Self::Moved(address()),
            "ASK" => Self::Ask(address()),
            "TRYAGAIN" => Self::TryAgain,
            "OOM" => Self::Full,
            // A replica that was a master, or one that lost its master; or it does not know us any
            // more, and a new connection says who we are.
            "READONLY" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS" => Self::Demoted,
            "CLUSTERDOWN" if error.text().contains("slot not served") => Self::Refused,
            "LOADING" | "CLUSTERDOWN" | "BUSY" | "UNKILLABLE" | "DENIED" => Self::Away,
            "WRONGTYPE" => Self::Corrupt,
            "ERR" => Self::of_script(error.text()),
            // NOPERM, MISCONF, NOREPLICAS, and what nobody knows yet: Redis is there, and answers.
            _ => Self::Refused,
        }
    }

    /// Before Redis 7, errors within a script are told as `ERR`, with the cause somewhere in the text.
    fn of_script(text: &str) -> Self {
        let says = |word: &str| text.contains(word);
        if says("OOM command not allowed") {
            Self::Full
        } else if says("READONLY You can't write against a read only") {
            Self::Demoted
        } else if says("MISCONF") || says("NOREPLICAS") || says("NOPERM") || is_misfit(text) {
            Self::Refused
        } else {
            // Our scripts fail only on states that they did not write.
            Self::Corrupt
        }
    }
}

/// Whether the server does not know the commands that are needed.
fn is_misfit(text: &str) -> bool {
    text.starts_with("ERR unknown command") || text.starts_with("ERR unknown subcommand")
}

/// What the engine is told.
pub(crate) fn store_error(error: CallError, timeout: std::time::Duration) -> StoreError {
    let error = match error {
        CallError::Timeout => return StoreError::Timeout(timeout),
        CallError::Full => return StoreError::Overloaded,
        error @ CallError::Closed(_) => return StoreError::unavailable(error),
        CallError::Server(error) => error,
    };
    match Meaning::of(&error) {
        Meaning::Corrupt => StoreError::Corrupt(error.to_string()),
        Meaning::Refused | Meaning::Full | Meaning::TryAgain => {
            StoreError::Refused(error.to_string())
        }
        Meaning::NoScript
        | Meaning::Moved(_)
        | Meaning::Ask(_)
        | Meaning::Demoted
        | Meaning::Away => StoreError::Unavailable(Arc::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_key_are_told_apart_from_those_of_a_server() {
        for (text, meaning) in [
            ("NOSCRIPT No matching script. Please use EVAL.", Meaning::NoScript),
            ("MOVED 866 127.0.0.1:7001", Meaning::Moved("127.0.0.1:7001".into())),
            ("ASK 866 [::1]:7001", Meaning::Ask("[::1]:7001".into())),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Meaning::TryAgain),
            ("OOM command not allowed when used memory > 'maxmemory'.", Meaning::Full),
            (
                "ERR Error running script (call to f_0): @user_script:9: @user_script: 9: -OOM \
                 command not allowed when used memory > 'maxmemory'.",
                Meaning::Full,
            ),
            ("READONLY You can't write against a read only replica.", Meaning::Demoted),
            ("NOAUTH Authentication required.", Meaning::Demoted),
            ("LOADING Redis is loading the dataset in memory", Meaning::Away),
            ("BUSY Redis is busy running a script.", Meaning::Away),
            ("CLUSTERDOWN The cluster is down", Meaning::Away),
            ("CLUSTERDOWN Hash slot not served", Meaning::Refused),
            ("WRONGTYPE Operation against a key holding the wrong kind", Meaning::Corrupt),
            ("ERR user_script:60: attempt to perform arithmetic", Meaning::Corrupt),
            ("ERR unknown command 'EVALSHA'", Meaning::Refused),
            ("NOPERM No permissions to access a key", Meaning::Refused),
            ("MISCONF Redis is configured to save RDB snapshots", Meaning::Refused),
            ("NOREPLICAS Not enough good replicas to write.", Meaning::Refused),
            ("SOMETHING new", Meaning::Refused),
        ] {
            assert_eq!(Meaning::of(&ServerError::new(text)), meaning, "{text}");
        }
    }
}
