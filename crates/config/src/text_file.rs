//! Reading files of a bounded size.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _},
    path::Path,
};

/// Maximum size of a file: a device or a wrong path must not fill the memory of a running server.
const MAX_BYTES: u64 = 16 << 20;

/// Reads the file at `path`.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "it is larger than 16 MiB"));
    }
    Ok(text)
}
