//! A receiver of webhooks that can fail.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, time::timeout};

/// Response to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Status(u16),
    /// Redirects to an address that would accept the request.
    Redirect,
    /// Never.
    Silence,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An HTTP server that records requests.
pub(crate) struct Receiver {
    pub(crate) url: String,
    got: watch::Receiver<Vec<Delivery>>,
}

struct Desk {
    script: Mutex<VecDeque<Answer>>,
    got: watch::Sender<Vec<Delivery>>,
}

const PATIENCE: Duration = Duration::from_secs(180);

// === impl Receiver ===

impl Receiver {
    /// Starts a receiver that answers with `script` first, then with 204.
    pub(crate) async fn start(script: &[Answer]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hooks/quota?key=hidden", listener.local_addr().unwrap());
        let script = Mutex::new(script.iter().copied().collect());
        let (sender, got) = watch::channel(Vec::new());
        let desk = Arc::new(Desk { script, got: sender });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let desk = Arc::clone(&desk);
                let answer = service_fn(move |request| Arc::clone(&desk).answer(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
            }
        });
        Self { url, got }
    }

    /// The configuration of a webhook that sends here.
    pub(crate) fn config(&self, secret: &str, more: &str) -> String {
        format!("[{{url: '{}', secret: {secret}{more}}}]", self.url)
    }

    /// Waits until the requests satisfy the condition; returns them.
    pub(crate) async fn until(&self, fits: impl FnMut(&Vec<Delivery>) -> bool) -> Vec<Delivery> {
        let mut got = self.got.clone();
        let all = timeout(PATIENCE, got.wait_for(fits)).await;
        all.unwrap_or_else(|_| panic!("{:?}", self.got.borrow())).unwrap().clone()
    }
}

// === impl Delivery ===

impl Delivery {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(crate) fn event(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

// === impl Desk ===

impl Desk {
    async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        assert_eq!((head.method.as_str(), head.uri.path()), ("POST", "/hooks/quota"));
        let body = body.collect().await.unwrap().to_bytes();
        let answer = self.script.lock().unwrap().pop_front().unwrap_or(Answer::Status(204));
        self.got.send_modify(|got| got.push(Delivery { headers: head.headers, body }));
        let response = match answer {
            Answer::Status(status) => Response::builder().status(status),
            Answer::Redirect => Response::builder().status(307).header("location", "/hooks/quota"),
            Answer::Silence => std::future::pending().await,
        };
        Ok(response.body(Full::default()).unwrap())
    }
}
