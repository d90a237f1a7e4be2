//! What the node answers over HTTP, but for the relay.
//!
//! A request is counted by its address before anything of it is read. What needs a token then finds out
//! whose it is, from memory alone, and is counted by that and by the address. Only then a quota is
//! asked, which is kept in the database.
//!
//! | module | what it owns |
//! |---|---|
//! | `limits` | classes of routes, and what the documents in force mean to them |
//! | `request_id`, `observe` | what happens to every request |
//! | `deny` | addresses that the operator denies |
//! | `user` | the user API: signing in, bootstrap, policies, what needs a token |
//! | `admin` | the admin API: documents, the denylist and their audit log |
//! | `health` | `/healthz` and `/metrics` |
//! | `error`, `body` | refusals in the words of the API, and bodies within bounds |

mod admin;
mod body;
mod deny;
pub(crate) mod error;
mod health;
mod limits;
mod observe;
mod request_id;
mod user;

use std::{
    io,
    sync::{Arc, Mutex},
};

use axum::{Router, extract::DefaultBodyLimit, middleware, routing::options};
use headgate::LimitError;
use headgate_guard::{DrainLayer, Guard, PolicyError};
use headgate_quota::Committer;
use thiserror::Error;
use tokio::sync::Semaphore;

use self::{
    admin::Sessions,
    limits::HttpObserver,
    user::{Tokens, library::Library},
};
use crate::{
    Node,
    quota::DailyQuotas,
    relay::{Relay, information},
};

/// The largest request.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// How many requests look through all notes at the same time; others wait.
const MAX_READERS: usize = 2;

/// What the routes share.
pub(crate) struct Http {
    pub(crate) node: Arc<Node>,
    pub(crate) guard: Guard,
    pub(crate) tokens: Tokens,
    pub(crate) sessions: Sessions,
    pub(crate) quotas: DailyQuotas,
    pub(crate) library: Arc<dyn Library>,
    /// How many may read in it at once: reading keeps a core busy.
    pub(crate) readers: Arc<Semaphore>,
    /// What logins must be signed for.
    pub(crate) relay_url: String,
    /// Held while limits are put in force, so that older ones never come last.
    pub(crate) limits_turn: Mutex<()>,
}

/// Why nothing is answered.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The limits make no sense together.
    #[error("limits: {0}")]
    Policy(#[from] PolicyError),
    /// The quotas' own limits make no sense.
    #[error("quotas: {0}")]
    Quotas(LimitError),
    /// There is no randomness for tokens.
    #[error("cannot draw a secret for tokens: {0}")]
    Random(io::Error),
}

/// The routes, and what must run beside them.
pub struct Service {
    http: Arc<Http>,
    committer: Committer,
}

// === impl Service ===

impl Service {
    /// The routes of `node`, which look things up in what `relay` keeps.
    pub fn new(node: &Arc<Node>, relay: &Relay) -> Result<Self, HttpError> {
        let observer = Arc::new(HttpObserver::new(&node.metrics));
        let guard = Guard::builder(limits::of(node)?, limits::routes())
            .backend(node.guards.clone().observer(observer))
            .trusted_proxies(node.config.proxies.clone())
            .headers_when_admitted(true)
            .build()?;
        let (quotas, committer) = DailyQuotas::new(node).map_err(HttpError::Quotas)?;
        let tokens = Tokens::new(node.config.token_secret.as_ref()).map_err(HttpError::Random)?;
        let sessions = Sessions::default();
        let library: Arc<dyn Library> = relay.events().clone();
        let http = Http {
            node: Arc::clone(node),
            guard,
            tokens,
            sessions,
            quotas,
            library,
            readers: Arc::new(Semaphore::new(MAX_READERS)),
            relay_url: relay.url().to_string(),
            limits_turn: Mutex::default(),
        };
        Ok(Self { http: Arc::new(http), committer })
    }

    /// The routes; metrics are among them unless they have a listener of their own.
    pub fn router(&self) -> Router {
        let http = &self.http;
        let deny = middleware::from_fn_with_state(Arc::clone(http), deny::deny);
        let metrics = match http.node.config.metrics_listen {
            None => health::metrics_router(http),
            Some(_) => Router::new(),
        };
        let routes = Router::new()
            .merge(user::router(http))
            .merge(admin::router(http))
            .merge(health::router(http))
            .merge(metrics)
            // The relay answers GET itself; all else is a request like any other.
            .route("/relay", options(information::preflight).fallback(error::method_not_allowed))
            .fallback(error::not_found)
            .method_not_allowed_fallback(error::method_not_allowed)
            .layer(DefaultBodyLimit::max(MAX_BYTES))
            // Nothing of a request is read before this.
            .layer(http.guard.layer())
            .layer(deny);
        self.observed(routes)
    }

    /// What is answered where metrics have a listener of their own.
    pub fn metrics_router(&self) -> Router {
        let http = &self.http;
        let routes = health::router(http).merge(health::metrics_router(http));
        let routes = routes.fallback(error::not_found);
        self.observed(routes.layer(http.guard.layer()))
    }

    fn observed(&self, routes: Router) -> Router {
        let observe = middleware::from_fn_with_state(Arc::clone(&self.http), observe::observe);
        routes
            .layer(observe)
            .layer(middleware::from_fn(request_id::name))
            // Refusals that come before the body is read arrive all the same.
            .layer(DrainLayer)
    }

    /// Keeps limits and quotas in step, for ever.
    pub async fn run(self) {
        tokio::join!(limits::follow(&self.http), self.http.quotas.follow(), self.committer.run(),);
    }
}
