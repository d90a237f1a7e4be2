use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use headgate::{Decision, decision::ceil_secs};
use http::{HeaderMap, Response};
use pin_project_lite::pin_project;

use super::{
    headers::{self, Standing},
    rules::{Asked, Rule},
};
use crate::Allowance;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// The answer of a [`GuardService`](crate::GuardService), or of the one within it.
    pub struct ResponseFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, B, E> {
        Inner { #[pin] future: F, told: Option<Box<Told>> },
        Denied { response: Option<Box<Response<B>>> },
        Waiting { future: Boxed<Result<Response<B>, E>> },
    }
}

/// What somebody who is admitted is told.
pub(super) struct Told {
    class: Box<str>,
    window_secs: u64,
    more_secs: Option<u64>,
    decision: Decision,
}

// === impl ResponseFuture ===

impl<F, B, E> ResponseFuture<F, B, E> {
    #[inline]
    pub(super) const fn inner(future: F, told: Option<Box<Told>>) -> Self {
        Self { state: State::Inner { future, told } }
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
            Projected::Inner { future, told: None } => future.poll(context),
            Projected::Inner { future, told } => {
                let mut answer = ready!(future.poll(context));
                if let (Ok(response), Some(told)) = (&mut answer, told.take()) {
                    told.write(response.headers_mut());
                }
                Poll::Ready(answer)
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

// === impl Told ===

impl Told {
    pub(super) fn new(rule: &Rule, asked: Asked, decision: Decision) -> Self {
        let allowance = rule.allowance(asked, decision.rule);
        let more = allowance.and_then(|it| it.limit()?.more_after(&decision));
        Self {
            class: rule.name().into(),
            window_secs: allowance.map_or(0, Allowance::window_secs),
            more_secs: more.map(|more| ceil_secs(more).max(1)),
            decision,
        }
    }

    /// A stage further in has said more already: it knows who asked.
    pub(super) fn write(&self, headers: &mut HeaderMap) {
        if headers::are_written(headers) {
            return;
        }
        let Self { class, window_secs, more_secs, decision } = self;
        let (window_secs, more_secs) = (*window_secs, *more_secs);
        headers::write(headers, &Standing { class, window_secs, more_secs, decision });
    }
}
