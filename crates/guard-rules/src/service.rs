use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use headgate::Cost;
use headgate_guard::{Denial, Denied, Render, RequestHead, Surface, UnreadBody};
use headgate_ratelimit::Attributes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::{RuleLayer, RuleVerdict, UnknownPeer, layer::Shared};

/// A service whose requests are decided by rules: see [`RuleLayer`].
#[derive(Clone)]
pub struct RuleService<S, R> {
    pub(crate) inner: S,
    pub(crate) layer: RuleLayer<R>,
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Attributes and cost of a request.
type Question = (Attributes<'static>, Cost);

/// A denied request, and the rule that denied it.
struct Rejection {
    rule: String,
    denied: Denied,
}

impl<S, R, A, B> Service<Request<A>> for RuleService<S, R>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    R: Render<B> + Clone + Send + Sync + 'static,
    A: Body<Data: Send, Error: Send> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Boxed<Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let clone = self.inner.clone();
        // The service that was polled ready takes the request.
        let mut inner = mem::replace(&mut self.inner, clone);
        let layer = self.layer.clone();
        let surface = Surface::of(&request);
        let question = layer.shared.question(&RequestHead::of(&request));
        Box::pin(async move {
            let Err(rejection) = layer.shared.decide(question, surface).await else {
                return inner.call(request).await;
            };
            let denial = Denial::new(&rejection.rule, rejection.denied);
            let mut response = denial.respond(&layer.render);
            let (head, body) = request.into_parts();
            if let Some(unread) = UnreadBody::new(head.version, &head.headers, body) {
                unread.drain().await.write(response.headers_mut());
            }
            Ok(response)
        })
    }
}

impl Shared {
    /// Returns the attributes and the cost of a request, which may not be held while the store
    /// answers: its body need not be `Sync`.
    fn question(&self, head: &RequestHead<'_>) -> Result<Question, UnknownPeer> {
        let units = self.cost.as_ref().map_or(1, |cost| cost(head)).clamp(1, Cost::MAX);
        let cost = Cost::new(units).unwrap_or(Cost::ONE);
        Ok((self.extractors.extract(head)?.into_owned(), cost))
    }

    /// Decides a request. One that cannot be decided is denied: an invalid value must not get a
    /// request around all limits, and a failing store has a failure mode.
    async fn decide(
        &self,
        question: Result<Question, UnknownPeer>,
        surface: Surface,
    ) -> Result<(), Rejection> {
        let Ok((attributes, cost)) = question else {
            self.refusals.unknown_peer();
            return Err(Rejection::undecided(Denied::unknown_peer(surface)));
        };
        match self.rules.check(attributes, cost).await {
            Ok(Some(verdict)) if !verdict.decision.allowed => {
                Err(Rejection::by_rule(verdict, surface))
            }
            Ok(_) => Ok(()),
            Err(error) => {
                self.refusals.undecided(&error);
                Err(Rejection::undecided(Denied::undecided(surface)))
            }
        }
    }
}

// === impl Rejection ===

impl Rejection {
    fn undecided(denied: Denied) -> Self {
        Self { rule: "rules".to_owned(), denied }
    }

    fn by_rule(verdict: RuleVerdict, surface: Surface) -> Self {
        let RuleVerdict { decision, rule, window_seconds } = verdict;
        // Names are quoted in headers.
        let is_plain = |c: &char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
        let rule = rule.chars().filter(is_plain).collect();
        Self { rule, denied: Denied::by_rate(surface, decision, window_seconds.into()) }
    }
}

impl<S: fmt::Debug, R> fmt::Debug for RuleService<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleService").field("inner", &self.inner).finish_non_exhaustive()
    }
}
