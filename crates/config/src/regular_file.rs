use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::Path,
};

/// Opens the regular file at `path`, which may be a link to it.
///
/// A pipe would not open before something writes to it, and opening a device can have effects.
///
/// # Errors
///
/// When it cannot be opened, or is no regular file.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // Something else may take its place before it is opened; a task that polls has to expect that
    // a read hangs anyway.
    if fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    let message = "not a regular file: expected no directory, pipe, socket or device";
    Err(io::Error::new(ErrorKind::InvalidInput, message))
}

#[cfg(all(test, unix))]
mod tests {
    use std::{io::Read as _, os::unix::fs::symlink, process::Command};

    use super::*;

    #[test]
    fn pipes_devices_and_directories_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&*pipe, Path::new("/dev/zero"), folder.path()] {
            let error = open_regular_file(path).unwrap_err().to_string();
            assert!(error.starts_with("not a regular file"), "{error}");
        }
        let missing = open_regular_file(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "text").unwrap();
        symlink("file", &link).unwrap();
        let mut text = String::new();
        open_regular_file(&link).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
