//! What happens around every request: its id, its time limit, its log line, its numbers.

use std::{net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{
        Method, Request,
        header::{CACHE_CONTROL, CONTENT_LENGTH},
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use headgate_guard::{Held, HeldBody, UnreadBody};
use headgate_serve::RequestBody;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio::time::error::Elapsed;
use tracing::{Level, debug, enabled, error, field::display, info};

use super::{
    check, client::Peer, error::ApiError, json::JsonBody, keyed, quotas, routes::Templates,
};
use crate::{
    area::Area,
    in_time::in_time,
    metrics::Answered,
    quotas::QuotaRefusal,
    request_id::{self, RequestId},
    services::Services,
    telemetry::{Span, within},
};

/// Answers HTTP requests.
pub(crate) struct Surface {
    router: TowerToHyperService<Router>,
    templates: Templates,
    services: Arc<Services>,
    request_timeout: Duration,
}

impl Surface {
    pub(crate) fn new(
        services: Arc<Services>,
        metrics_path: Option<&str>,
        console: bool,
        request_timeout: Duration,
    ) -> Self {
        let (router, templates) = super::routes(metrics_path, console).with(Arc::clone(&services));
        Self { router, templates, services, request_timeout }
    }

    /// Answers a request that came from `peer`.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<RequestBody>,
        peer: SocketAddr,
    ) -> Response {
        let started = self.services.clock.steady();
        let id = RequestId::of(request.headers());
        let method = bounded(request.method());
        let is_check = request.method() == Method::POST && request.uri().path() == check::PATH;
        let path = if is_check { check::PATH } else { self.templates.of(request.uri().path()) };
        let is_keyed = !is_check && path.starts_with(keyed::PREFIX);
        let area = quotas::area(request.uri().path());
        let span = self.services.tracer.as_ref().map(|tracer| {
            let route = (path != Templates::UNMATCHED).then_some(path);
            tracer.http(request.headers(), method, route, &id)
        });

        let (answered, unread) = {
            // Where they stand they stay: the future of a check is large, and would be moved with
            // every request.
            let answering = pin!(self.dispatch(request, peer, &id, path));
            within(span.as_ref(), answering).await
        };
        let mut response = answered.unwrap_or_else(|_| late(path).into_response());

        let took = self.services.since(started);
        log((area, &id), span.as_ref(), method, path, &response, took);
        let status = response.status();
        if let Some(span) = span {
            span.answered_http(status);
        }
        let answered = Answered { method, path, status: status.as_str(), took };
        self.services.metrics.requests.answered(&answered);
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            // Axum has noted the length of the body that was not there.
            response.headers_mut().remove(CONTENT_LENGTH);
            let body = if is_keyed { keyed::envelope(&error) } else { error.envelope(area, &id) };
            *response.body_mut() = Body::from(body);
        }
        if is_keyed {
            response.headers_mut().insert(CACHE_CONTROL, keyed::NO_STORE);
        }
        response.headers_mut().insert(request_id::HEADER, id.into_header());
        if let Some(unread) = unread {
            unread.drain().await.write(response.headers_mut());
        }
        response
    }
}

impl Surface {
    /// Answers a request in time, or not; gives back what of its body was not read.
    async fn dispatch(
        &self,
        request: Request<RequestBody>,
        peer: SocketAddr,
        id: &RequestId,
        path: &str,
    ) -> (Result<Response, Elapsed>, Option<UnreadBody<RequestBody>>) {
        let patience = self.request_timeout;
        let (is_get, is_post) = (request.method() == Method::GET, request.method() == Method::POST);
        if is_post && path == check::PATH {
            let mut request = request.map(HeldBody::owned);
            let answered = in_time(patience, pin!(self.check(&mut request))).await;
            let (head, body) = request.into_parts();
            (answered, body.unread(&head))
        } else if (is_get || is_post) && path == keyed::check::PATH {
            let (head, body) = request.into_parts();
            let answered = in_time(patience, pin!(self.check_key(&head, peer))).await;
            (answered, UnreadBody::new(head.version, &head.headers, body))
        } else {
            let (request, held) = Held::hold(request);
            let answered = in_time(patience, Box::pin(self.route(request, peer, id))).await;
            (answered, held.and_then(Held::unread))
        }
    }

    async fn route(
        &self,
        mut request: Request<HeldBody<RequestBody>>,
        peer: SocketAddr,
        id: &RequestId,
    ) -> Response {
        request.extensions_mut().insert(Peer(peer));
        // Who changes something has the request's name written down.
        request.extensions_mut().insert(id.clone());
        match self.router.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Almost every request is this one, so it does not ask the router where it belongs.
    async fn check(&self, request: &mut Request<HeldBody<RequestBody>>) -> Response {
        match self.decide(request).await {
            Ok(response) => response,
            Err(error) => error.into_response(),
        }
    }

    async fn decide(
        &self,
        request: &mut Request<HeldBody<RequestBody>>,
    ) -> Result<Response, ApiError> {
        <JsonBody>::announced(request)?;
        let body = JsonBody::read(request.body_mut()).await?;
        check::check(State(Arc::clone(&self.services)), body).await
    }

    /// Those who limit by keys ask only this, as often.
    async fn check_key(&self, head: &Parts, peer: SocketAddr) -> Response {
        let answer = keyed::check::check(&self.services, head, Some(Peer(peer))).await;
        answer.into_response()
    }
}

/// What a request is told that took too long. An increment may be on its way into the ledger: a
/// client that hears of a time-out would send it again, and be charged twice.
fn late(path: &str) -> ApiError {
    if path == quotas::increment::PATH {
        QuotaRefusal::Unconfirmed("the request took too long".to_owned()).into()
    } else {
        ApiError::TimedOut
    }
}

/// The route's template stands for the path: what callers put there may name people.
fn log(
    (area, id): (Area, &RequestId),
    span: Option<&Span>,
    method: &str,
    path: &str,
    response: &Response,
    took: Duration,
) {
    let refusal = response.extensions().get::<ApiError>();
    if refusal.is_none() && !enabled!(Level::DEBUG) {
        return;
    }
    let trace_id = span.map(Span::trace_id).map(display);
    let (request_id, status) = (id.as_str(), response.status().as_u16());
    let took_us = took.as_micros() as u64;
    match refusal {
        None => {
            debug!(request_id, trace_id, method, path, status, took_us, "Answered {request_id}");
        }
        Some(refusal) => {
            let code = refusal.code(area);
            if let Some(cause) = refusal.cause() {
                error!(
                    request_id,
                    trace_id, method, path, status, code, took_us, cause, "Failed {request_id}"
                );
                return;
            }
            info!(
                request_id,
                trace_id, method, path, status, code, took_us, "Refused {request_id}"
            );
        }
    }
}

/// The method's name; callers can make up methods, and labels must stay few.
fn bounded(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_increment_is_not_told_that_it_may_be_sent_again_as_new() {
        let told = |path| late(path).into_response().status().as_u16();
        assert_eq!(told(quotas::increment::PATH), 503);
        assert_eq!(told(check::PATH), 408);
    }
}
