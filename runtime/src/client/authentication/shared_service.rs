//! The connections of one set of credentials, which many requests use at once.
//!
//! A `kube::Client` passes each request through a task of its own. The client of the operator does
//! so already: one more for the credentials would double the work of the scheduler.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use kube::client::{Body, ClientBuilder, DynBody};
use kube::{Client, Config};
use tower_layer::Layer;
use tower_service::Service;

use super::BoxError;

/// An answer whose body arrives later.
pub(super) type StreamedResponse = Response<Box<DynBody>>;

/// An answer to wait for.
type FutureResponse = BoxFuture<'static, Result<StreamedResponse, BoxError>>;

type DynService = dyn Service<Request<Body>, Response = StreamedResponse, Error = BoxError, Future = FutureResponse>
    + Send;

/// The connections of one set of credentials, and what is known of these.
#[derive(Clone)]
pub(super) struct CredentialsClient {
    service: SharedService,
    pub(super) namespace: Arc<str>,
    /// The end of the credentials, if a plugin has named one.
    pub(super) valid_until: Option<Timestamp>,
}

/// A service that is always ready: its requests wait.
#[derive(Clone)]
struct SharedService(Arc<Mutex<Box<DynService>>>);

/// Keeps the service that a client is built with.
#[derive(Default)]
struct KeptService(Mutex<Option<SharedService>>);

// === impl CredentialsClient ===

impl CredentialsClient {
    /// Builds what `kube::Client` is built of.
    ///
    /// # Errors
    /// If the configuration is wrong, or its plugin fails.
    pub(super) fn new(config: Config) -> Result<Self, kube::Error> {
        let kept = KeptService::default();
        let client: Client = ClientBuilder::try_from(config)?.with_layer(&kept).build();
        let service = kept.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let missing = || kube::Error::Service("the client has no service".into());
        Ok(Self {
            service: service.ok_or_else(missing)?,
            namespace: client.default_namespace().into(),
            valid_until: *client.valid_until(),
        })
    }

    /// Sends a request.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<StreamedResponse, BoxError> {
        self.service.begin(request).await?.await
    }
}

// === impl SharedService ===

impl SharedService {
    /// Begins a request as soon as the service is ready; no other request comes in between.
    async fn begin(&self, request: Request<Body>) -> Result<FutureResponse, BoxError> {
        let mut request = Some(request);
        poll_fn(|cx| {
            let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ready!(service.poll_ready(cx))?;
            let request = request.take().ok_or("the request was sent before")?;
            Poll::Ready(Ok(service.call(request)))
        })
        .await
    }
}

impl Service<Request<Body>> for SharedService {
    type Response = StreamedResponse;
    type Error = BoxError;
    type Future = FutureResponse;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> FutureResponse {
        let service = self.clone();
        Box::pin(async move { service.begin(request).await?.await })
    }
}

// === impl KeptService ===

impl<S> Layer<S> for KeptService
where
    S: Service<
            Request<Body>,
            Response = StreamedResponse,
            Error = BoxError,
            Future = FutureResponse,
        > + Send
        + 'static,
{
    type Service = SharedService;

    fn layer(&self, service: S) -> SharedService {
        let shared = SharedService(Arc::new(Mutex::new(Box::new(service))));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(shared.clone());
        shared
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use http_body_util::{BodyExt as _, Empty};

    use super::*;

    /// Takes one request each time that it was asked whether it is ready, as services may do.
    #[derive(Default)]
    struct StrictService {
        is_ready: bool,
        was_busy: bool,
    }

    impl Service<Request<Body>> for StrictService {
        type Response = StreamedResponse;
        type Error = BoxError;
        type Future = FutureResponse;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            self.was_busy = !self.was_busy;
            if self.was_busy {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.is_ready = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> FutureResponse {
            assert!(std::mem::take(&mut self.is_ready), "it is not ready");
            let body: Box<DynBody> = Box::new(Empty::new().map_err(|never| match never {}));
            Box::pin(std::future::ready(Ok(Response::new(body))))
        }
    }

    #[tokio::test]
    async fn requests_that_are_sent_at_once_wait_until_the_service_is_ready_for_each() {
        let service = KeptService::default().layer(StrictService::default());
        let requests = (0..20).map(|_| {
            let mut service = service.clone();
            async move { service.call(Request::new(Body::empty())).await }
        });
        for answer in join_all(requests).await {
            assert!(answer.expect("an answer").status().is_success());
        }
    }
}
