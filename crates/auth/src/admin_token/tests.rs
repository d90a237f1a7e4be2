use std::{collections::BTreeSet, thread};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn failure(data_dir: &Path) -> String {
    let error = AdminToken::open_or_create(data_dir).unwrap_err();
    error.to_string().replace(&data_dir.display().to_string(), "DATA")
}

#[test]
fn the_first_start_creates_it_and_the_next_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a/data");
    let first = AdminToken::open_or_create(&data).unwrap();
    assert!(first.created());
    assert!(is_token(first.expose()), "{}", first.expose());
    assert_eq!(first.path(), data.join("admin-token"));
    assert_eq!((mode(&data), mode(first.path())), (0o700, 0o600));
    assert_eq!(fs::read_dir(&data).unwrap().count(), 1, "the draft is gone");

    let second = AdminToken::open_or_create(&data).unwrap();
    assert!(!second.created());
    assert_eq!(second.expose(), first.expose());
    assert!(!format!("{first:?}").contains(first.expose()));
}

#[test]
fn no_two_are_alike() {
    let made = || AdminToken::open_or_create(tempfile::tempdir().unwrap().path()).unwrap().text;
    assert_ne!(made(), made());
}

#[test]
fn servers_that_start_at_once_share_one() {
    let folder = tempfile::tempdir().unwrap();
    let tokens: Vec<AdminToken> = thread::scope(|scope| {
        let starts: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| AdminToken::open_or_create(folder.path()).unwrap()))
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let texts: BTreeSet<&str> = tokens.iter().map(AdminToken::expose).collect();
    assert_eq!(texts.len(), 1);
    assert_eq!(tokens.iter().filter(|token| token.created()).count(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_other_users_can_read_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let token = AdminToken::open_or_create(folder.path()).unwrap();
    for wide in [0o644, 0o640, 0o602] {
        fs::set_permissions(token.path(), fs::Permissions::from_mode(wide)).unwrap();
        let expected = format!(
            "DATA/admin-token is readable by other users (mode {wide:o}): run chmod 600 on it or, if \
             it may have been read, delete it; the next start creates a new token"
        );
        assert_eq!(failure(folder.path()), expected);
    }
    fs::set_permissions(token.path(), fs::Permissions::from_mode(0o400)).unwrap();
    assert!(AdminToken::open_or_create(folder.path()).is_ok());
}

#[test]
fn a_file_without_a_token_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let token = AdminToken::open_or_create(folder.path()).unwrap();
    let cut = &token.expose()[..20];
    let huge = "a".repeat(1 << 20);
    for contents in [&b""[..], b"\n", b"hunter2", b"\xff\xfe", cut.as_bytes(), huge.as_bytes()] {
        fs::write(token.path(), contents).unwrap();
        let expected = "DATA/admin-token holds no admin token: delete it; the next start \
                        creates a new one";
        assert_eq!(failure(folder.path()), expected);
    }
}

#[test]
fn a_folder_that_cannot_be_created_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let told = failure(&file);
    assert!(told.starts_with("cannot open the admin token DATA/admin-token: "), "{told}");
    assert!(told.ends_with(": let the server own it, or set another server.data_dir"), "{told}");
}
