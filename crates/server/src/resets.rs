//! What the log says of resets that are not on record.

use headgate_ratelimit::{RepositoryError, usecase::ResetError};
use tracing::error;

/// Says in the log that a reset is missing in the audit log, if it is.
pub(crate) fn tell_unrecorded(
    request_id: &str,
    reset: &Result<Option<RepositoryError>, ResetError>,
) {
    match reset {
        Ok(None) => {}
        Ok(Some(cause)) => {
            error!(request_id, %cause, "A reset was made but not recorded in the audit log");
        }
        Err(failure) => {
            if let Some(cause) = failure.unrecorded() {
                error!(request_id, %cause, "A reset was tried but not recorded in the audit log");
            }
        }
    }
}
