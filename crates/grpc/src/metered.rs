//! Streams of uses of a reservation.

use std::{future::Future, pin::Pin};

use futures_util::{Stream, StreamExt as _, stream};
use headgate_api::Namespace;
use tonic::{Status, Streaming};

use super::error::CallError;

/// The answers to a stream of messages.
pub(super) type Metered<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Answers each message before the next one is read, so that uses are charged in order. The stream
/// ends with the first error.
pub(super) fn metered<M, T, F>(
    messages: Streaming<M>,
    namespace: Namespace,
    mut answer: impl FnMut(M) -> F + Send + 'static,
) -> Metered<T>
where
    M: Send + 'static,
    T: Send + 'static,
    F: Future<Output = Result<T, CallError>> + Send + 'static,
{
    let answers = messages.then(move |message| {
        let answering = message.map(&mut answer);
        async move {
            match answering {
                Ok(answering) => answering.await.map_err(|error| error.into_status(namespace)),
                Err(unreadable) => Err(unreadable),
            }
        }
    });
    let ended = stream::unfold((Box::pin(answers), false), async |(mut answers, failed)| {
        if failed {
            return None;
        }
        let answer = answers.next().await?;
        let failed = answer.is_err();
        Some((answer, (answers, failed)))
    });
    Box::pin(ended)
}
