//! Logs.

use headgate_testkit::CapturedLog;

use crate::harness::Server;

#[tokio::test]
async fn a_denial_is_logged_with_hashes_only() {
    let log = CapturedLog::start("info");
    let server = Server::embedded().await;
    server.post("10.0.0.1", "太郎", "最初の投稿").await.is_created();
    assert_eq!(log.take_errors(), Vec::<String>::new());

    server.post("10.0.0.1", "次郎", "次の投稿").await.is_limited();
    let [line] = log.take_errors().try_into().expect("one line");
    assert!(line.contains("ip#f5047344122f0dee"), "{line}");
    assert!(line.contains("nick#3f46e8d95187fe3f"), "{line}");
    for raw in ["10.0.0.1", "次郎", "次の投稿"] {
        assert!(!line.contains(raw), "{line}");
    }
}
