//! The future that stores return.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::{Outcomes, StoreError};

type Answer = Result<Outcomes, StoreError>;

/// The answer of a store. An answer that is ready at once needs no allocation.
#[must_use = "futures do nothing unless polled"]
pub struct StoreFuture<'a>(State<'a>);

enum State<'a> {
    /// `None` once it was polled.
    Ready(Option<Answer>),
    Pending(Pin<Box<dyn Future<Output = Answer> + Send + 'a>>),
}

impl<'a> StoreFuture<'a> {
    /// An answer that is already known.
    #[inline]
    pub fn ready(answer: Result<Outcomes, StoreError>) -> Self {
        Self(State::Ready(Some(answer)))
    }

    /// An answer that takes I/O.
    pub fn pending(answer: impl Future<Output = Result<Outcomes, StoreError>> + Send + 'a) -> Self {
        Self(State::Pending(Box::pin(answer)))
    }

    /// Applies `f` to the answer, at once if it is ready.
    pub(crate) fn map(self, f: impl FnOnce(Answer) -> Answer + Send + 'a) -> Self {
        match self.0 {
            State::Ready(answer) => Self(State::Ready(answer.map(f))),
            State::Pending(answer) => Self::pending(async move { f(answer.await) }),
        }
    }

    /// The answer, if it is ready and no error.
    #[inline]
    pub(crate) fn outcomes(&self) -> Option<&Outcomes> {
        match &self.0 {
            State::Ready(Some(Ok(outcomes))) => Some(outcomes),
            _ => None,
        }
    }
}

impl Future for StoreFuture<'_> {
    type Output = Result<Outcomes, StoreError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            State::Ready(answer) => {
                Poll::Ready(answer.take().expect("`StoreFuture` polled after completion"))
            }
            State::Pending(answer) => answer.as_mut().poll(context),
        }
    }
}

impl fmt::Debug for StoreFuture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            State::Ready(answer) => f.debug_tuple("Ready").field(answer).finish(),
            State::Pending(_) => f.write_str("Pending"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    #[should_panic(expected = "polled after completion")]
    fn panics_when_polled_after_completion() {
        let mut future = StoreFuture::ready(Ok(Outcomes::new()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut future).poll(&mut context).is_ready());
        let _ = Pin::new(&mut future).poll(&mut context);
    }
}
