//! Logs.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::Server;

/// Log of this thread, on which the test's service runs.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let lines = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false);
        (log, tracing::subscriber::set_default(lines.finish()))
    }

    /// The lines at ERROR since the last call.
    pub(crate) fn errors(&self) -> Vec<String> {
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        text.lines().filter(|line| line.contains(" ERROR ")).map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_denial_is_logged_with_hashes_only() {
    let (log, _guard) = Log::start();
    let server = Server::embedded().await;
    server.post("10.0.0.1", "太郎", "最初の投稿").await.is_created();
    assert_eq!(log.errors(), Vec::<String>::new());

    server.post("10.0.0.1", "次郎", "次の投稿").await.is_limited();
    let [line] = log.errors().try_into().expect("one line");
    assert!(line.contains("ip#f5047344122f0dee"), "{line}");
    assert!(line.contains("nick#3f46e8d95187fe3f"), "{line}");
    for raw in ["10.0.0.1", "次郎", "次の投稿"] {
        assert!(!line.contains(raw), "{line}");
    }
}
