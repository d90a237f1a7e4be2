use std::{
    convert::Infallible,
    future,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use http_body_util::Full;
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{runtime, sync::oneshot};

use super::{Answer, State, lock, sign_in};

/// HTTP server on a thread of its own, so that tests need no tokio runtime. Dropping it closes the
/// port.
pub(super) struct Publisher {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Listens on `port`, if it is free.
    pub(super) fn start(port: u16, state: &Arc<Mutex<State>>) -> Option<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        let (stop, stopped) = oneshot::channel();
        let state = Arc::clone(state);
        let thread = thread::spawn(move || run(listener, &state, stopped));
        Some(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // An error means that it panicked.
            let _ = thread.join();
        }
    }
}

fn run(listener: TcpListener, state: &Arc<Mutex<State>>, stopped: oneshot::Receiver<()>) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Connections end with the runtime.
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, state) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: TcpListener, state: &Arc<Mutex<State>>) {
    listener.set_nonblocking(true).expect("a listener for tokio");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener for tokio");
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(state);
        let service = service_fn(move |request| answer(request, Arc::clone(&state)));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != "/certs" {
        return Ok(sign_in::answer(request, &state).await);
    }
    let (status, body) = {
        let answer = {
            let mut state = lock(&state);
            state.fetches += 1;
            match state.answer.clone() {
                Answer::Keys => Some((200, state.jwks())),
                Answer::Status(status, body) => Some((status, body)),
                Answer::Silence => None,
            }
        };
        match answer {
            Some(answer) => answer,
            None => future::pending().await,
        }
    };
    let response = Response::builder().status(status).header("content-type", "application/json");
    Ok(response.body(Full::new(body.into())).expect("a response"))
}
