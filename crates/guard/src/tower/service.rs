use std::{
    fmt, mem,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Extensions, Method, Request, Response, Version, header::CONTENT_TYPE};
use http_body::Body;
use tower_service::Service;

use super::{
    Denial, Render, RequestKey, ResponseFuture,
    compiled::{CompiledClass, CompiledPolicy, Consulted},
    future::AdmittedHeaders,
    layer::{Snapshot, Stage},
    shared::{Shared, UNKNOWN_ADDRESS},
};
use crate::{
    Surface, UnreadBody,
    decider::{CheckResult, FastResult, Rejection},
};

/// A service whose requests are limited: see [`GuardLayer`](crate::GuardLayer).
#[derive(Clone)]
pub struct GuardService<S, R> {
    pub(super) inner: S,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) stage: Stage,
    pub(super) render: R,
}

/// Decision on one request.
enum Verdict<B> {
    Admitted(Option<Box<AdmittedHeaders>>),
    Denied(Box<Response<B>>),
    /// The store has to be called. The number is the index of the class.
    Pending(Arc<CompiledPolicy>, usize, Client),
}

/// The client that a request is counted for.
enum Client {
    Address(IpAddr),
    Subject(Option<Box<str>>, IpAddr),
    Key(RequestKey),
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
        match self.direct(request.extensions()) {
            FastResult::Admitted => ResponseFuture::inner(self.inner.call(request), None),
            // Separate functions, so that an admitted request is moved only once.
            FastResult::Undecided => self.fast_path(request),
            denied @ FastResult::Denied(_) => self.slow_path(denied, request),
        }
    }
}

impl<S, R> GuardService<S, R> {
    /// Decides by the peer's address alone, if the policy allows that.
    #[inline]
    fn direct(&self, extensions: &Extensions) -> FastResult {
        match (&self.stage, self.snapshot.direct()) {
            (Stage::BeforeAuth, Some(limit)) => limit.acquire(extensions),
            _ => FastResult::Undecided,
        }
    }

    /// Decides by class and address in memory, if that is possible.
    #[inline(never)]
    fn fast_path<A, B>(&mut self, request: Request<A>) -> ResponseFuture<S::Future, B, S::Error>
    where
        S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        R: Render<B> + Clone + Send + Sync + 'static,
        A: Body<Data: Send, Error: Send> + Send + 'static,
        B: Send + 'static,
    {
        match self.by_address(&request) {
            FastResult::Admitted => ResponseFuture::inner(self.inner.call(request), None),
            result => self.slow_path(result, request),
        }
    }

    /// Decides by address in memory, without headers for admitted requests.
    #[inline]
    fn by_address<A>(&self, request: &Request<A>) -> FastResult {
        let shared = &*self.snapshot.shared;
        if shared.headers_when_admitted || !matches!(self.stage, Stage::BeforeAuth) {
            return FastResult::Undecided;
        }
        self.snapshot.with_policy(|policy| {
            let class = policy.class_of(request);
            let Some(counted) = class.and_then(|(_, class)| class.by_address.as_ref()) else {
                return FastResult::Admitted;
            };
            let Some(limit) = shared.decider.fast(counted.allowance(), policy.escalation()) else {
                return FastResult::Undecided;
            };
            match shared.counted_client(request) {
                Some(client) => limit.acquire(&counted.check_address(&client)),
                None => FastResult::Undecided,
            }
        })
    }

    /// Denies the request, or decides if the fast path could not.
    #[cold]
    #[inline(never)]
    fn slow_path<A, B>(
        &mut self,
        result: FastResult,
        request: Request<A>,
    ) -> ResponseFuture<S::Future, B, S::Error>
    where
        S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        R: Render<B> + Clone + Send + Sync + 'static,
        A: Body<Data: Send, Error: Send> + Send + 'static,
        B: Send + 'static,
    {
        match self.verdict(result, &request) {
            Verdict::Admitted(headers) => ResponseFuture::inner(self.inner.call(request), headers),
            Verdict::Denied(response) => refuse(request, response),
            Verdict::Pending(policy, index, client) => {
                let clone = self.inner.clone();
                // The service that was polled ready takes the request.
                let inner = mem::replace(&mut self.inner, clone);
                let service = Self { inner, ..self.clone() };
                ResponseFuture::waiting(service.decide_then_call(request, policy, index, client))
            }
        }
    }
}

impl<S, R> GuardService<S, R> {
    fn verdict<A, B>(&self, result: FastResult, request: &Request<A>) -> Verdict<B>
    where
        R: Render<B>,
    {
        let shared = &*self.snapshot.shared;
        self.snapshot.with_policy(|policy| {
            let Some((index, class)) = policy.class_of(request) else {
                return Verdict::Admitted(None);
            };
            if let FastResult::Denied(rejection) = result {
                return self.deny(class, request, *rejection);
            }
            let (client, consulted, result) = match self.decide_now(shared, policy, class, request)
            {
                Ok(decided) => decided,
                Err(rejection) => return self.deny(class, request, rejection),
            };
            match result {
                Some(result) => self.conclude(class, consulted, result, request),
                None => Verdict::Pending(Arc::clone(policy), index, client),
            }
        })
    }

    /// Decides without waiting, if that is possible.
    fn decide_now<A>(
        &self,
        shared: &Shared,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        request: &Request<A>,
    ) -> Result<(Client, Consulted, Option<CheckResult>), Rejection> {
        if let Stage::ByKey(extractor, missing) = &self.stage {
            if class.by_key.is_none() {
                return Ok((Client::Address(UNKNOWN_ADDRESS), Consulted::Key, Some(Ok(None))));
            }
            let key = shared.key(extractor, *missing, request)?;
            let result = shared.by_key_now(policy, class, &key);
            return Ok((Client::Key(key), Consulted::Key, result));
        }
        let address = match shared.counted_client(request) {
            Some(address) => address,
            // Not needed: this class does not count by address here.
            None if !self.stage.counts_addresses(class) => UNKNOWN_ADDRESS,
            None => return Err(shared.reject_unknown_peer()),
        };
        if let Stage::AfterAuth(find) = &self.stage {
            let subject = find(request.extensions());
            let result = shared.after_auth_now(policy, class, address, subject);
            let owned = subject.filter(|_| result.is_none()).map(Into::into);
            return Ok((Client::Subject(owned, address), Consulted::after_auth(subject), result));
        }
        let result = shared.before_auth_now(policy, class, address);
        Ok((Client::Address(address), Consulted::Address, result))
    }

    fn conclude<A, B>(
        &self,
        class: &CompiledClass,
        consulted: Consulted,
        result: CheckResult,
        request: &Request<A>,
    ) -> Verdict<B>
    where
        R: Render<B>,
    {
        match result {
            Ok(decision) => {
                let wanted = self.snapshot.shared.headers_when_admitted;
                let headers = decision
                    .filter(|_| wanted)
                    .map(|decision| Box::new(AdmittedHeaders::new(class, consulted, decision)));
                Verdict::Admitted(headers)
            }
            Err(rejection) => self.deny(class, request, rejection),
        }
    }

    #[cold]
    fn deny<A, B>(
        &self,
        class: &CompiledClass,
        request: &Request<A>,
        rejection: Rejection,
    ) -> Verdict<B>
    where
        R: Render<B>,
    {
        let denied = self.snapshot.shared.denied(surface(request), class, rejection);
        Verdict::Denied(Box::new(Denial::new(class.name(), denied).respond(&self.render)))
    }

    /// Calls the store, and then the service.
    async fn decide_then_call<A, B>(
        mut self,
        request: Request<A>,
        policy: Arc<CompiledPolicy>,
        index: usize,
        client: Client,
    ) -> Result<Response<B>, S::Error>
    where
        S: Service<Request<A>, Response = Response<B>>,
        R: Render<B>,
        A: Body<Data: Send, Error: Send> + Send + 'static,
    {
        let (shared, class) = (Arc::clone(&self.snapshot.shared), policy.class(index));
        let (consulted, result) = match client {
            Client::Address(address) => {
                (Consulted::Address, shared.before_auth(&policy, class, address).await)
            }
            Client::Subject(subject, address) => {
                let subject = subject.as_deref();
                let result = shared.after_auth(&policy, class, address, subject).await;
                (Consulted::after_auth(subject), result)
            }
            Client::Key(key) => (Consulted::Key, shared.by_key(&policy, class, &key).await),
        };
        match self.conclude(class, consulted, result, &request) {
            Verdict::Denied(mut response) => {
                let (head, body) = request.into_parts();
                if let Some(unread) = UnreadBody::new(head.version, &head.headers, body) {
                    unread.drain().await.write(response.headers_mut());
                }
                Ok(*response)
            }
            Verdict::Pending(..) => unreachable!("a result is an answer"),
            Verdict::Admitted(headers) => {
                let mut response = self.inner.call(request).await?;
                if let Some(headers) = headers {
                    headers.write(response.headers_mut());
                }
                Ok(response)
            }
        }
    }
}

/// Responds to a request whose body has not been read.
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

impl Consulted {
    const fn after_auth(subject: Option<&str>) -> Self {
        if subject.is_some() { Self::SubjectAndAddress } else { Self::AddressAfterAuth }
    }
}

/// Returns [`Surface::Grpc`] if the client speaks gRPC. The content type alone does not prove it: a
/// gRPC denial has the status 200, and any client can send the header.
pub(crate) fn surface<A>(request: &Request<A>) -> Surface {
    let content_type = request.headers().get(CONTENT_TYPE);
    let is_grpc = request.version() == Version::HTTP_2
        && request.method() == Method::POST
        && content_type.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    if is_grpc { Surface::Grpc } else { Surface::Http }
}
