use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;

use super::InFlightBody;
use crate::{Permit, UnreadBody};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// Response future of an [`InFlightService`](crate::InFlightService).
    pub struct InFlightFuture<F, B, E> {
        #[pin]
        state: State<F, B, E>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, B, E> {
        Inner { #[pin] future: F, permit: Option<Permit> },
        Denied { response: Option<Box<Response<B>>> },
        Waiting { future: Boxed<Result<Response<InFlightBody<B>>, E>> },
    }
}

impl<F, B, E> InFlightFuture<F, B, E> {
    pub(super) const fn inner(future: F, permit: Option<Permit>) -> Self {
        Self { state: State::Inner { future, permit } }
    }

    pub(super) fn waiting<W>(future: W) -> Self
    where
        W: Future<Output = Result<Response<InFlightBody<B>>, E>> + Send + 'static,
    {
        Self { state: State::Waiting { future: Box::pin(future) } }
    }

    /// Responds to a request whose body has not been read.
    pub(super) fn refused<A>(request: Request<A>, mut response: Box<Response<B>>) -> Self
    where
        A: Body<Data: Send, Error: Send> + Send + 'static,
        B: Send + 'static,
    {
        let (head, body) = request.into_parts();
        let Some(unread) = UnreadBody::new(head.version, &head.headers, body) else {
            return Self { state: State::Denied { response: Some(response) } };
        };
        Self::waiting(async move {
            unread.drain().await.write(response.headers_mut());
            Ok(response.map(InFlightBody::unlimited))
        })
    }
}

impl<F, B, E> Future for InFlightFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<InFlightBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            Projected::Inner { future, permit } => {
                let response = ready!(future.poll(context))?;
                let permit = permit.take();
                Poll::Ready(Ok(response.map(|body| InFlightBody::new(body, permit, None))))
            }
            Projected::Denied { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response.map(InFlightBody::unlimited))),
                None => Poll::Pending,
            },
            Projected::Waiting { future } => future.as_mut().poll(context),
        }
    }
}

impl<F, B, E> fmt::Debug for InFlightFuture<F, B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightFuture").finish_non_exhaustive()
    }
}
