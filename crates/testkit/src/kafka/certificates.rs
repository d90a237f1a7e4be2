use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Elliptic curve keys, which are generated fast.
const NEW_KEY: [&str; 5] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/// Creates an authority, and a certificate for 127.0.0.1 signed by it.
pub(super) fn make(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1")?;
    let openssl = |command: &str, more: &[&str]| {
        let args = command.split(' ').chain(more.iter().copied());
        let made = Command::new("openssl").args(args).current_dir(folder).output()?;
        let says = || String::from_utf8_lossy(&made.stderr).into_owned();
        if made.status.success() { Ok(()) } else { Err(io::Error::other(says())) }
    };
    openssl("req -x509 -days 2 -subj /CN=authority -keyout ca.key -out ca.crt", &NEW_KEY)?;
    openssl("req -subj /CN=kafka -keyout kafka.key -out kafka.csr", &NEW_KEY)?;
    openssl(
        "x509 -req -in kafka.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out kafka.crt",
        &[],
    )?;
    let parts = ["kafka.key", "kafka.crt"].map(|part| fs::read(folder.join(part)));
    let [key, certificate] = parts;
    fs::write(key_store(folder), [key?, certificate?].concat())
}

/// Key and certificate of the broker, in one file.
pub(super) fn key_store(folder: &Path) -> PathBuf {
    folder.join("kafka.pem")
}

/// Certificate of the authority.
pub(super) fn authority(folder: &Path) -> PathBuf {
    folder.join("ca.crt")
}
