//! An endpoint with a certificate of a private authority.

use headgate_store_dynamodb::{DynamoDbConfigError, DynamoDbStore};
use headgate_testkit::{CertificateAuthority, DynamoDb, Nginx, Validity, require};

use crate::support::{acquire, acquire_eventually, config, cooldown};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_configured_authority_is_trusted() {
    let server = require!(DynamoDb::shared());
    let port = server.endpoint().rsplit(':').next().unwrap().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("authority");
    let front = |name: &str, validity| {
        let files = authority.issue_valid(&[name], validity).write(folder.path(), "server");
        Nginx::start_tls(port, &files, None)
    };
    let nginx = require!(front("127.0.0.1", Validity::Long));
    let at =
        |nginx: &Nginx| config(&format!("https://127.0.0.1:{}", nginx.port()), &server.new_table());
    let trusting = at(&nginx).root_certificate(authority.pem()).unwrap();
    let store = DynamoDbStore::connect(trusting);
    store.create_table().await.unwrap();
    assert!(acquire_eventually(&store, "k", &cooldown()).await[0].allowed);

    let stranger = CertificateAuthority::new("stranger");
    let (expired, misnamed) = (
        require!(front("127.0.0.1", Validity::Expired)),
        require!(front("other.test", Validity::Long)),
    );
    for (config, message) in [
        (at(&nginx), "not trusted"),
        (at(&nginx).root_certificate(stranger.pem()).unwrap(), "not trusted"),
        (at(&expired).root_certificate(authority.pem()).unwrap(), "has expired"),
        (at(&misnamed).root_certificate(authority.pem()).unwrap(), "for another host name"),
    ] {
        let store = DynamoDbStore::connect(config);
        let error = acquire(&store, &["k"], &cooldown()).await.unwrap_err().to_string();
        assert!(error.contains("TLS: ") && error.contains(message), "{message}: {error}");
    }
    let error = at(&nginx).root_certificate("nonsense").unwrap_err();
    assert!(matches!(error, DynamoDbConfigError::Certificates(_)), "{error}");
}
