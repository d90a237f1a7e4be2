use std::{
    fmt, mem,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Method, Request, Response, Version, header::CONTENT_TYPE};
use http_body::Body;
use tower_service::Service;

use super::{
    Denial, Render, ResponseFuture,
    future::Told,
    guard::{Live, NOWHERE},
    layer::{Snapshot, Stage},
    rules::{Asked, Rule, Rules},
};
use crate::{
    Surface, UnreadBody,
    judge::{Quick, Refusal, Ruling},
};

/// A service whose requests are limited: see [`GuardLayer`](crate::GuardLayer).
#[derive(Clone)]
pub struct GuardService<S, R> {
    pub(super) inner: S,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) stage: Stage,
    pub(super) render: R,
}

/// What becomes of a request.
enum Verdict<B> {
    Admitted(Option<Box<Told>>),
    Denied(Box<Response<B>>),
    /// A store has to be asked about the class at this place.
    Unknown(Arc<Rules>, usize, IpAddr),
}

// === impl GuardService ===

impl<S, R, A, B> Service<Request<A>> for GuardService<S, R>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    R: Render<B> + Clone + Send + Sync + 'static,
    A: Body<Data: Send, Error: Send> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, B, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    #[inline]
    fn call(&mut self, request: Request<A>) -> Self::Future {
        match self.admit_quickly(&request) {
            Quick::Admitted => ResponseFuture::inner(self.inner.call(request), None),
            // Apart, so that a request that is admitted is moved once.
            otherwise => self.call_at_length(otherwise, request),
        }
    }
}

impl<S, R> GuardService<S, R> {
    /// The way of almost everybody, which says no word more than it is asked for.
    #[inline]
    fn admit_quickly<A>(&self, request: &Request<A>) -> Quick {
        let live = &*self.snapshot.live;
        if live.tell_admitted || !matches!(self.stage, Stage::BeforeAuth) {
            return Quick::Unknown;
        }
        self.snapshot.with_rules(|rules| {
            let counted = rules.rule_for(request).and_then(|(_, rule)| rule.by_address.as_ref());
            let Some(counted) = counted else {
                return Quick::Admitted;
            };
            let Some(limit) = live.judge.quick(counted.allowance(), rules.escalation()) else {
                return Quick::Unknown;
            };
            match live.counted_client(request) {
                Some(client) => limit.take(&counted.ask_of(&client)),
                None => Quick::Unknown,
            }
        })
    }

    /// Denies, or tells more, or asks the store before the service.
    #[cold]
    #[inline(never)]
    fn call_at_length<A, B>(
        &mut self,
        quick: Quick,
        request: Request<A>,
    ) -> ResponseFuture<S::Future, B, S::Error>
    where
        S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        R: Render<B> + Clone + Send + Sync + 'static,
        A: Body<Data: Send, Error: Send> + Send + 'static,
        B: Send + 'static,
    {
        match self.verdict(quick, &request) {
            Verdict::Admitted(told) => ResponseFuture::inner(self.inner.call(request), told),
            Verdict::Denied(response) => refuse(request, response),
            Verdict::Unknown(rules, place, address) => {
                let clone = self.inner.clone();
                // The one that was ready takes the request, when it is decided.
                let inner = mem::replace(&mut self.inner, clone);
                let service = Self { inner, ..self.clone() };
                ResponseFuture::waiting(service.call_once_decided(request, rules, place, address))
            }
        }
    }
}

impl<S, R> GuardService<S, R> {
    fn verdict<A, B>(&self, quick: Quick, request: &Request<A>) -> Verdict<B>
    where
        R: Render<B>,
    {
        let live = &*self.snapshot.live;
        self.snapshot.with_rules(|rules| {
            let Some((place, rule)) = rules.rule_for(request) else {
                return Verdict::Admitted(None);
            };
            if let Quick::Denied(refusal) = quick {
                return self.deny(live, rule, request, *refusal);
            }
            match live.counted_client(request) {
                Some(client) => self.rule_at_length(live, rules, place, client, request),
                // Nobody is counted by it.
                None if !self.stage.counts_addresses(rule) => {
                    self.rule_at_length(live, rules, place, NOWHERE, request)
                }
                None => self.deny(live, rule, request, live.refuse_unknown_peer()),
            }
        })
    }

    /// The way of those who are not admitted at once or want to be told more.
    fn rule_at_length<A, B>(
        &self,
        live: &Live,
        rules: &Arc<Rules>,
        place: usize,
        address: IpAddr,
        request: &Request<A>,
    ) -> Verdict<B>
    where
        R: Render<B>,
    {
        let rule = rules.rule(place);
        let (asked, ruling) = match &self.stage {
            Stage::BeforeAuth => (Asked::BeforeAuth, live.before_auth_now(rules, rule, address)),
            Stage::AfterAuth(subject) => {
                let subject = subject(request.extensions());
                (Asked::about(subject), live.after_auth_now(rules, rule, address, subject))
            }
        };
        match ruling {
            Some(ruling) => self.conclude(live, rule, asked, ruling, request),
            None => Verdict::Unknown(Arc::clone(rules), place, address),
        }
    }

    /// What is said about a ruling.
    fn conclude<A, B>(
        &self,
        live: &Live,
        rule: &Rule,
        asked: Asked,
        ruling: Ruling,
        request: &Request<A>,
    ) -> Verdict<B>
    where
        R: Render<B>,
    {
        match ruling {
            Ok(decision) => {
                let decision = decision.filter(|_| live.tell_admitted);
                let told = decision.map(|decision| Box::new(Told::new(rule, asked, decision)));
                Verdict::Admitted(told)
            }
            Err(refusal) => self.deny(live, rule, request, refusal),
        }
    }

    #[cold]
    fn deny<A, B>(
        &self,
        live: &Live,
        rule: &Rule,
        request: &Request<A>,
        refusal: Refusal,
    ) -> Verdict<B>
    where
        R: Render<B>,
    {
        let denied = live.denied(surface(request), rule, refusal);
        Verdict::Denied(Box::new(Denial::new(rule.name(), denied).respond(&self.render)))
    }

    /// Asks the store, and then the service.
    async fn call_once_decided<A, B>(
        mut self,
        request: Request<A>,
        rules: Arc<Rules>,
        place: usize,
        address: IpAddr,
    ) -> Result<Response<B>, S::Error>
    where
        S: Service<Request<A>, Response = Response<B>>,
        R: Render<B>,
        A: Body<Data: Send, Error: Send> + Send + 'static,
    {
        let (live, rule) = (Arc::clone(&self.snapshot.live), rules.rule(place));
        let (asked, ruling) = match self.stage.clone() {
            Stage::BeforeAuth => (Asked::BeforeAuth, live.before_auth(&rules, rule, address).await),
            Stage::AfterAuth(find) => {
                let subject: Option<Box<str>> = find(request.extensions()).map(Into::into);
                let subject = subject.as_deref();
                (Asked::about(subject), live.after_auth(&rules, rule, address, subject).await)
            }
        };
        match self.conclude(&live, rule, asked, ruling, &request) {
            Verdict::Denied(mut response) => {
                let (head, body) = request.into_parts();
                if let Some(unread) = UnreadBody::new(head.version, &head.headers, body) {
                    unread.drain().await.write(response.headers_mut());
                }
                Ok(*response)
            }
            Verdict::Unknown(..) => unreachable!("a ruling is an answer"),
            Verdict::Admitted(told) => {
                let mut response = self.inner.call(request).await?;
                if let Some(told) = told {
                    told.write(response.headers_mut());
                }
                Ok(response)
            }
        }
    }
}

/// Answers a request whose body nobody has read.
fn refuse<F, A, B, E>(
    request: Request<A>,
    mut response: Box<Response<B>>,
) -> ResponseFuture<F, B, E>
where
    A: Body<Data: Send, Error: Send> + Send + 'static,
    B: Send + 'static,
{
    let (head, body) = request.into_parts();
    match UnreadBody::new(head.version, &head.headers, body) {
        None => ResponseFuture::denied(response),
        Some(unread) => ResponseFuture::waiting(async move {
            unread.drain().await.write(response.headers_mut());
            Ok(*response)
        }),
    }
}

impl<S: fmt::Debug, R> fmt::Debug for GuardService<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Asked {
    const fn about(subject: Option<&str>) -> Self {
        if subject.is_some() { Self::OfSubject } else { Self::OfNobody }
    }
}

/// What a client speaks. A header alone proves nothing: whoever sent it would be denied by a status
/// that says 200.
pub(super) fn surface<A>(request: &Request<A>) -> Surface {
    let content_type = request.headers().get(CONTENT_TYPE);
    let is_grpc = request.version() == Version::HTTP_2
        && request.method() == Method::POST
        && content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if is_grpc { Surface::Grpc } else { Surface::Http }
}
