use futures_util::future::join_all;
use headgate::SystemClock;
use tokio::net::TcpListener;

use super::*;

const HOST: &str = "127.0.0.1:8080";

/// Signs in at an issuer with this URL.
fn oidc(issuer: &str) -> Oidc {
    let url = |path| HttpUrl::try_from(format!("{issuer}/{path}")).ok();
    let config = OidcConfig {
        client_id: Some("console".to_owned()),
        authorization_endpoint: url("authorize"),
        token_endpoint: url("token"),
        ..OidcConfig::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let origins = RedirectOrigins::new([], Some("http"));
    Oidc::new(&config, &AuthConfig::default(), origins, "/callback", &clock).unwrap()
}

#[tokio::test]
async fn requests_to_the_issuer_are_bounded() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let oidc = oidc(&format!("http://{}", silent.local_addr().unwrap()));
    let states = join_all((0..=MAX_REQUESTS).map(async |_| oidc.begin(HOST).await.unwrap().state));
    let states = states.await;
    let finish = async |state: &str| oidc.finish(HOST, state, "code").await.map(drop).unwrap_err();

    let (last, others) = states.split_last().unwrap();
    let waiting = join_all(others.iter().map(|state| finish(state)));
    let one_more = async {
        while oidc.requests.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let busy = finish(last).await;
        for _ in others {
            drop(silent.accept().await.unwrap());
        }
        busy
    };
    let (failed, busy) = tokio::join!(waiting, one_more);
    assert!(matches!(busy, OidcError::Busy), "{busy}");
    assert!(failed.iter().all(|error| matches!(error, OidcError::Client(_))), "{failed:?}");
    // Its state is still valid, and there is room again.
    drop(silent);
    let error = finish(last).await;
    assert!(matches!(error, OidcError::Client(_)), "{error}");
    assert_eq!(oidc.requests.available_permits(), MAX_REQUESTS);
}
