use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use headgate::{Decision, decision::ceil_secs};
use http::{HeaderMap, Response};
use pin_project_lite::pin_project;

use super::{
    compiled::{CompiledClass, Consulted},
    headers::{self, LimitStatus},
};
use crate::Allowance;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// Response future of a [`GuardService`](crate::GuardService).
    pub struct ResponseFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, B, E> {
        Inner { #[pin] future: F, headers: Option<Box<AdmittedHeaders>> },
        Denied { response: Option<Box<Response<B>>> },
        Waiting { future: Boxed<Result<Response<B>, E>> },
    }
}

/// Limit headers of a response to an admitted request.
pub(super) struct AdmittedHeaders {
    class: Box<str>,
    window_secs: u64,
    more_secs: Option<u64>,
    decision: Decision,
}

// === impl ResponseFuture ===

impl<F, B, E> ResponseFuture<F, B, E> {
    #[inline]
    pub(super) const fn inner(future: F, headers: Option<Box<AdmittedHeaders>>) -> Self {
        Self { state: State::Inner { future, headers } }
    }

    pub(super) const fn denied(response: Box<Response<B>>) -> Self {
        Self { state: State::Denied { response: Some(response) } }
    }

    pub(super) fn waiting<W>(future: W) -> Self
    where
        W: Future<Output = Result<Response<B>, E>> + Send + 'static,
    {
        Self { state: State::Waiting { future: Box::pin(future) } }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Inner { future, headers: None } => future.poll(context),
            Projected::Inner { future, headers } => {
                let mut result = ready!(future.poll(context));
                if let (Ok(response), Some(headers)) = (&mut result, headers.take()) {
                    headers.write(response.headers_mut());
                }
                Poll::Ready(result)
            }
            Projected::Denied { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(*response)),
                None => Poll::Pending,
            },
            Projected::Waiting { future } => future.as_mut().poll(context),
        }
    }
}

impl<F, B, E> std::fmt::Debug for ResponseFuture<F, B, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

// === impl AdmittedHeaders ===

impl AdmittedHeaders {
    pub(super) fn new(class: &CompiledClass, consulted: Consulted, decision: Decision) -> Self {
        let allowance = class.allowance(consulted, decision.decided_by);
        let more = allowance.and_then(|it| it.limit()?.more_after(&decision));
        Self {
            class: class.name().into(),
            window_secs: allowance.map_or(0, Allowance::window_secs),
            more_secs: more.map(|more| ceil_secs(more).max(1)),
            decision,
        }
    }

    /// Writes the headers, unless an inner layer has already written its own.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        if headers::are_written(headers) {
            return;
        }
        let Self { class, window_secs, more_secs, decision } = self;
        let (window_secs, more_secs) = (*window_secs, *more_secs);
        headers::write(headers, &LimitStatus { class, window_secs, more_secs, decision });
    }
}
