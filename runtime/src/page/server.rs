//! The HTTP server of the page, on one thread of its own.
//!
//! Each connection serves one request, or one stream of events; when there are too many, the server
//! drops the oldest, and its page connects again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Page;
use super::allowed_hosts::AllowedHosts;
use super::assets::{DOCUMENT, SCRIPT, STYLES};
use super::edits::{self, PageEdit, PageEdits};
use super::query::{EditRoute, PageRoute};
use super::response::{self, PageBody};
use super::stream;

/// How many connections are open at the same time.
const CONNECTIONS: usize = 64;

/// How long a connection lasts: a stream of events is connected again by the page.
const LONGEST_CONNECTION: Duration = Duration::from_secs(600);

/// How long a client may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The size of the head of a request.
const REQUEST_BYTES: usize = 16 * 1024;

/// The size of an edit: two texts of specs, in which quotes take twice the space. The API server
/// takes objects of up to 1.5 MiB.
const EDIT_BYTES: usize = 2 * 2 * 1536 * 1024;

/// How long the server waits after the system has failed to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// The last calls that the timeline shows.
const TIMELINE: usize = 200;

/// The open connections, of which there are at most [`CONNECTIONS`].
#[derive(Default)]
struct PageConnections {
    tasks: JoinSet<()>,
    order: VecDeque<AbortHandle>,
}

/// Answers the requests of all connections.
pub(super) struct PageService {
    pub(super) page: Page,
    pub(super) hosts: AllowedHosts,
    /// None unless the operator was started with edits.
    pub(super) edits: Option<PageEdits>,
}

/// Serves until `stop`, in the thread that calls this.
pub(super) fn run(
    listener: TcpListener,
    service: PageService,
    stop: &CancellationToken,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let service = Arc::new(service);
        tokio::select! {
            () = stop.cancelled() => {}
            () = accept(&listener, &service) => {}
        }
        Ok(())
    })
}

async fn accept(listener: &tokio::net::TcpListener, service: &Arc<PageService>) {
    let mut connections = PageConnections::default();
    loop {
        tokio::select! {
            () = connections.reap() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.admit(stream, service),
                // Most likely there are no free file descriptors; wait until there are.
                Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
            },
        }
    }
}

// === impl PageConnections ===

impl PageConnections {
    fn admit(&mut self, stream: TcpStream, service: &Arc<PageService>) {
        self.order.retain(|connection| !connection.is_finished());
        if self.order.len() >= CONNECTIONS
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        let service = Arc::clone(service);
        let connection = self.tasks.spawn(async move {
            match tokio::time::timeout(LONGEST_CONNECTION, serve(stream, service)).await {
                Ok(Ok(())) | Err(_) => {}
                Ok(Err(error)) => debug!("a connection of the page failed: {error}"),
            }
        });
        self.order.push_back(connection);
    }

    async fn reap(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

async fn serve(stream: TcpStream, service: Arc<PageService>) -> Result<(), hyper::Error> {
    let answer = service_fn(|request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_TIMEOUT)
        .keep_alive(false)
        .max_buf_size(REQUEST_BYTES)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

// === impl PageService ===

impl PageService {
    async fn answer(&self, request: Request<Incoming>) -> Response<PageBody> {
        if let Err(refusal) = self.hosts.check(&request) {
            return response::text(StatusCode::FORBIDDEN, &refusal.to_string());
        }
        let uri = request.uri();
        if let Some(edits) = &self.edits
            && let Some(route) = EditRoute::of(request.method(), uri.path())
        {
            let is_own =
                request.method() == Method::GET || request.headers().contains_key(header::ORIGIN);
            if !is_own || !edits.allows(request.headers()) {
                return response::text(StatusCode::FORBIDDEN, "open the address in the log");
            }
            return self.edit(route, request.into_body()).await;
        }
        let Some(route) = PageRoute::of(uri.path(), uri.query()) else {
            return response::text(StatusCode::NOT_FOUND, "there is nothing at this path");
        };
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refusal = response::text(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD are allowed here",
            );
            let allowed = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(header::ALLOW, allowed);
            return refusal;
        }
        self.show(route)
    }

    async fn edit(&self, route: EditRoute, body: Incoming) -> Response<PageBody> {
        let Some(object) = self.page.journal.detail(&route.uid) else {
            return response::text(StatusCode::NOT_FOUND, "there is no such object");
        };
        let parts = self.page.parts.clone();
        if route.action == EditRoute::SOURCE {
            let source = async move { edits::source(&parts, &object).await };
            return match self.page.parts.request(source).await {
                Some(Ok(source)) => response::json(&source),
                Some(Err(error)) => response::text(StatusCode::CONFLICT, &error.to_string()),
                None => response::text(StatusCode::SERVICE_UNAVAILABLE, "the operator stops"),
            };
        }
        let body = Limited::new(body, EDIT_BYTES).collect();
        let Ok(Ok(body)) = tokio::time::timeout(REQUEST_TIMEOUT, body).await else {
            return response::text(StatusCode::BAD_REQUEST, "the edit is too large or too slow");
        };
        let edit = match PageEdit::of(&route.action, &body.to_bytes()) {
            None => return response::text(StatusCode::NOT_FOUND, "there is no such edit"),
            Some(Err(error)) => {
                return response::text(StatusCode::BAD_REQUEST, &error.to_string());
            }
            Some(Ok(edit)) => edit,
        };
        let edited = async move { edits::make(&parts, &object, edit).await };
        match self.page.parts.request(edited).await {
            Some(Ok(())) => response::json(&true),
            Some(Err(error)) => response::text(StatusCode::CONFLICT, &error.to_string()),
            None => response::text(StatusCode::SERVICE_UNAVAILABLE, "the operator stops"),
        }
    }

    fn show(&self, route: PageRoute) -> Response<PageBody> {
        let ok = StatusCode::OK;
        match route {
            PageRoute::Document => response::file(ok, "text/html; charset=utf-8", DOCUMENT),
            PageRoute::Script => response::file(ok, "text/javascript; charset=utf-8", SCRIPT),
            PageRoute::Styles => response::file(ok, "text/css; charset=utf-8", STYLES),
            PageRoute::Overview => response::json(&self.page.overview(self.edits.is_some())),
            PageRoute::Objects(query) => response::json(&self.page.journal.page(&query)),
            PageRoute::Calls => response::json(&self.page.journal.calls(TIMELINE)),
            PageRoute::Stream => stream::events(self.page.journal.clone()),
            PageRoute::Object(uid) => match self.page.object(&uid) {
                Some(object) => response::json(&object),
                None => response::text(StatusCode::NOT_FOUND, "there is no such object"),
            },
        }
    }
}
