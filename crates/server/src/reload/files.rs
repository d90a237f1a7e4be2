//! Files that the configuration names: a reload reads those that have changed under the same path.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

/// Larger files are compared up to this length.
const MAX_BYTES: u64 = 1024 * 1024;

/// Identifies the contents of the files of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents([u8; SHA256_OUTPUT_LEN]);

impl Contents {
    /// Reads the files. One that cannot be read has contents of its own.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let mut context = Context::new(&SHA256);
        for file in files {
            let bytes = read(file).ok();
            let length = bytes.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64);
            context.update(&length.to_le_bytes());
            context.update(&bytes.unwrap_or_default());
        }
        let mut contents = [0; SHA256_OUTPUT_LEN];
        contents.copy_from_slice(context.finish().as_ref());
        Self(contents)
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn contents_and_presence_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| folder.path().join(name));
        let mut seen = vec![Contents::of(&[]), Contents::of(&files[..1]), Contents::of(&files)];
        for (index, text) in [(0, ""), (0, "x"), (1, "x"), (0, "xx")] {
            fs::write(&files[index], text).unwrap();
            seen.push(Contents::of(&files));
        }
        for (place, contents) in seen.iter().enumerate() {
            assert!(!seen[..place].contains(contents), "{place}");
        }
        assert_eq!(seen.last(), Some(&Contents::of(&files)));
    }
}
