//! Handlers that return a constant response: the cost of the frameworks themselves.

use std::net::{Ipv4Addr, SocketAddr};

use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, routing::post};
use futures_util::stream;
use tokio::{net::TcpListener, runtime::Builder};
use tonic::{Request, Response, Status, transport::Server};

use crate::guard::{Entrant, Layers};

use self::proto::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};

/// The hidden first argument that makes this program such a server.
pub(crate) const ARGUMENT: &str = "--serve";

/// Serves until it is killed: `axum PORT`, a layer of the guard benchmark and `PORT`, or `tonic
/// PORT THREADS`.
pub(crate) fn serve(arguments: &[String]) {
    let number = |i: usize| arguments.get(i).and_then(|text| text.parse().ok());
    let port: usize = number(1).expect("a port");
    let address = (Ipv4Addr::LOCALHOST, port as u16);
    let threads = number(2).unwrap_or(2);
    let runtime = match threads {
        1 => Builder::new_current_thread().enable_all().build(),
        more => Builder::new_multi_thread().worker_threads(more).enable_all().build(),
    };
    runtime.expect("a runtime").block_on(async {
        let listener = TcpListener::bind(address).await.expect("a free port");
        match arguments[0].as_str() {
            "axum" => axum::serve(listener, axum_router()).await.expect("it serves"),
            "tonic" => tonic_server(listener).await,
            entrant => {
                let entrant = Entrant::named(entrant).expect("an entrant's name");
                let router = entrant.before(axum_router(), &Layers::new());
                let service = router.into_make_service_with_connect_info::<SocketAddr>();
                axum::serve(listener, service).await.expect("it serves");
            }
        }
    });
}

fn axum_router() -> Router {
    const BODY: &str =
        r#"{"allowed":true,"remaining":99,"reset_at":1740052260,"limit":100,"reason":""}"#;
    // Reads the body, as every POST handler does.
    let answer = async |_: Bytes| ([(CONTENT_TYPE, "application/json")], BODY);
    Router::new().route("/api/v1/ratelimit/check", post(answer))
}

async fn tonic_server(listener: TcpListener) {
    let connections = stream::unfold(listener, async |listener| {
        let connection = listener.accept().await.and_then(|(connection, _)| {
            connection.set_nodelay(true)?;
            Ok(connection)
        });
        Some((connection, listener))
    });
    let service = RateLimitServiceServer::new(Empty);
    Server::builder()
        .add_service(service)
        .serve_with_incoming(connections)
        .await
        .expect("it serves");
}

struct Empty;

#[tonic::async_trait]
impl RateLimitService for Empty {
    async fn check_rate_limit(
        &self,
        _: Request<proto::CheckRateLimitRequest>,
    ) -> Result<Response<proto::CheckRateLimitResponse>, Status> {
        Ok(Response::new(proto::CheckRateLimitResponse {
            allowed: true,
            remaining: 99,
            reset_at: 1_740_052_260,
            limit: 100,
            ..Default::default()
        }))
    }
}

#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::pedantic,
    reason = "made by a program; one call of it is answered"
)]
mod proto {
    tonic::include_proto!("k1s0.system.ratelimit.v1");
}
