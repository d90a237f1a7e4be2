//! Files that the configuration names: a reload reads those that have changed under the same path.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use ring::digest::{Context, Digest, SHA256};

/// Larger files are compared up to this length.
const MAX_BYTES: u64 = 1024 * 1024;

/// Identifies the contents of the files of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents(BTreeMap<PathBuf, Vec<u8>>);

impl Contents {
    /// Reads the files. One that cannot be read has contents of its own.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let digest = |file: &PathBuf| (file.clone(), digest(file).as_ref().to_vec());
        Self(files.iter().map(digest).collect())
    }

    /// Returns the files whose contents were others in `before`.
    pub(super) fn changed<'c>(&'c self, before: &'c Self) -> impl Iterator<Item = &'c Path> {
        let is_changed = |(file, digest): &(&'c PathBuf, &'c Vec<u8>)| {
            before.0.get(*file).is_some_and(|before| before != *digest)
        };
        self.0.iter().filter(is_changed).map(|(file, _)| file.as_path())
    }
}

fn digest(file: &Path) -> Digest {
    let bytes = read(file).ok();
    let length = bytes.as_ref().map_or(u64::MAX, |bytes| bytes.len() as u64);
    let mut context = Context::new(&SHA256);
    context.update(&length.to_le_bytes());
    context.update(&bytes.unwrap_or_default());
    context.finish()
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

    #[test]
    fn changed_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a", "b"].map(|name| folder.path().join(name));
        let before = Contents::of(&files);
        fs::write(&files[1], "x").unwrap();
        let after = Contents::of(&files);
        assert_eq!(after.changed(&before).collect::<Vec<_>>(), [files[1].as_path()]);
        assert_eq!(after.changed(&after).count(), 0);
        // Another path is a change of the configuration.
        assert_eq!(after.changed(&Contents::of(&files[..1])).count(), 0);
    }
}
