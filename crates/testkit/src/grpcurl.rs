//! grpcurl.

use std::path::PathBuf;

use crate::{Skip, cache, skip::find_program};

const NAME: &str = "grpcurl";

/// The program that the test dependencies pin, or else the one on `PATH`.
///
/// # Errors
///
/// [`Skip`] if it is not installed.
pub fn find_grpcurl() -> Result<PathBuf, Skip> {
    let installed = cache::tool(NAME).map(|folder| folder.join(NAME));
    match installed.filter(|program| program.is_file()) {
        Some(program) => Ok(program),
        None => find_program(NAME),
    }
}
