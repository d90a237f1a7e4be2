use async_trait::async_trait;
use futures_util::StreamExt;
use headgate::{Clock, SystemClock, Timestamp};
use headgate_auth::{Actor, Auth, AuthMethod};
use headgate_console::{Console, ConsoleSettings};
use headgate_quota::{Backlog, Delivery, Leadership, QuotaEventLog};

use super::*;
use crate::config::Config;

/// A log in which nothing happens.
struct Quietly;

#[async_trait]
impl QuotaEventLog for Quietly {
    async fn after(&self, _: i64, _: u32) -> Result<Vec<LoggedEvent>, RepositoryError> {
        Ok(Vec::new())
    }

    async fn before(&self, _: i64, _: u32) -> Result<Vec<LoggedEvent>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn deliveries(&self, _: &[&str]) -> Result<Vec<Delivery>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn undelivered(
        &self,
        _: &str,
        _: i64,
        _: u32,
    ) -> Result<Vec<LoggedEvent>, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn delivered(&self, _: &str, _: &[&str], _: Timestamp) -> Result<(), RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn backlog(&self, _: &str) -> Result<Backlog, RepositoryError> {
        unreachable!("not called in these tests")
    }

    async fn lead(&self, _: &str) -> Result<Option<Box<dyn Leadership>>, RepositoryError> {
        unreachable!("not called in these tests")
    }
}

/// A caller of a server without authentication.
fn anyone() -> Caller {
    let (access, console) = access(r#"{"mode":"off"}"#);
    Caller::without_token(access, console)
}

/// The access of a server with this `auth` section.
fn access(auth: &str) -> (Arc<Access>, Arc<Console>) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let config = Config { auth: serde_json::from_str(auth).unwrap(), ..Config::default() };
    let settings = ConsoleSettings {
        console: &config.console,
        auth: &config.auth,
        local_scheme: Some("http"),
        app: config.app.clone(),
    };
    let auth = Auth::new(&config.auth, None, Arc::clone(&clock)).unwrap();
    let access = Arc::new(Access::new(auth, Arc::clone(&clock)));
    (access, Arc::new(Console::new(settings, &clock)))
}

fn start(events: &Events, caller: Caller) -> mpsc::Receiver<String> {
    let permit = events.streams().acquire(None).unwrap();
    let access_replaced = caller.access_replaced();
    Following::new(events, EventFilter::default(), (caller, access_replaced), permit).start()
}

fn follow(events: &Events, caller: Caller) -> impl Stream<Item = String> {
    stream(start(events, caller)).map(|text| String::from_utf8(text.unwrap().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_has_a_heartbeat_every_fifteen_seconds_and_ends_after_an_hour() {
    let events = Events::new(Arc::new(Quietly));
    let began = Instant::now();
    let mut stream = Box::pin(follow(&events, anyone()));
    assert_eq!(stream.next().await.as_deref(), Some(GREETING));
    for beat in 1..=3 {
        assert_eq!(stream.next().await.as_deref(), Some(": still here\n\n"));
        assert_eq!(began.elapsed().as_secs(), 15 * beat);
    }
    while stream.next().await.is_some() {}
    assert_eq!(began.elapsed().as_secs(), 60 * 60);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected() {
    let events = Events::new(Arc::new(Quietly));
    let free = events.streams().available();
    let texts = start(&events, anyone());
    time::sleep(STALLED).await;
    assert_eq!((events.streams().available(), texts.is_closed()), (free - 1, false));
    time::sleep(HEARTBEAT * 2).await;
    assert_eq!((events.streams().available(), texts.is_closed()), (free, true));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_frees_its_permit() {
    let events = Events::new(Arc::new(Quietly));
    let free = events.streams().available();
    let mut stream = Box::pin(follow(&events, anyone()));
    assert!(stream.next().await.is_some());
    drop(stream);
    tokio::task::yield_now().await;
    assert_eq!(events.streams().available(), free);
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_the_session_that_opened_it() {
    let events = Events::new(Arc::new(Quietly));
    let (access, console) = access("{}");
    let role = Some(Action::ReadEvents.needs());
    let viewer = Actor { name: "viewer".into(), role, method: AuthMethod::Token };
    let (secret, _) = console.sessions.open(viewer, None).unwrap();
    let caller = Caller::without_token(access, Arc::clone(&console)).with_session(secret.clone());
    let mut stream = Box::pin(follow(&events, caller));
    assert_eq!(stream.next().await.as_deref(), Some(GREETING));
    assert_eq!(stream.next().await.as_deref(), Some(": still here\n\n"));
    console.sessions.close(&secret);
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_the_server_stops() {
    let events = Events::new(Arc::new(Quietly));
    let mut stream = Box::pin(follow(&events, anyone()));
    assert!(stream.next().await.is_some());
    let (end, ()) = tokio::join!(stream.next(), async { events.shut_down() });
    assert_eq!(end, None);
}
