//! The accept loop of the webhook server: TLS, HTTP/1.1 and HTTP/2, limits, graceful shutdown.
//!
//! It shares no code with the health endpoint, which serves single plain requests on a thread of
//! its own and drops the oldest connection when there are too many. Here, connections last, they
//! need TLS, and the one that makes room is the oldest that answers no review.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use kopf_core::admission::certificate::Certificate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::http_request::{RequestAnswerer, ReviewService};
use super::limits::WebhookLimits;
use super::open_connections::OpenConnections;
use crate::task::UnnamedTasks;

/// The current TLS configuration, which changes with the certificates; none for plain HTTP.
pub(super) type CurrentTlsConfig = Option<watch::Receiver<Arc<ServerConfig>>>;

/// The accept loop of one listener.
pub(super) struct AcceptLoop {
    pub(super) listener: TcpListener,
    pub(super) tls_config: CurrentTlsConfig,
    pub(super) service: Arc<ReviewService>,
    pub(super) limits: WebhookLimits,
}

/// A stream that fails when nothing was read for a while.
struct IdleTimeoutStream<S> {
    stream: S,
    idle: Duration,
    deadline: Pin<Box<Sleep>>,
}

// === impl AcceptLoop ===

impl AcceptLoop {
    /// Accepts connections until `stop`, then waits for the requests that have begun.
    pub(super) async fn run(self, stop: &CancellationToken) {
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        let open = Arc::new(OpenConnections::default());
        let graceful = GracefulShutdown::new();
        let mut connections = UnnamedTasks::default();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                () = connections.next_ended() => continue,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else {
                // Most likely there are no free file descriptors; wait until there are.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            if permits.available_permits() == 0 {
                open.displace_one();
            }
            let permit = tokio::select! {
                () = stop.cancelled() => break,
                permit = Arc::clone(&permits).acquire_owned() => permit,
            };
            let connection = Arc::new(open.add());
            let displaced = connection.displaced.clone();
            let served = serve(
                stream,
                self.tls_config.clone(),
                RequestAnswerer {
                    service: Arc::clone(&self.service),
                    connection,
                    certificate: None,
                },
                self.limits.clone(),
                graceful.watcher(),
            );
            connections.spawn(async move {
                tokio::select! {
                    served = served => {
                        if let Err(error) = served {
                            debug!("a connection failed: {error}");
                        }
                    }
                    () = displaced.cancelled() => {
                        debug!("a connection without a review makes room for another");
                    }
                }
                drop(permit);
            });
        }
        drop(self.listener);
        let finished = tokio::time::timeout(self.limits.drain, graceful.shutdown()).await;
        if finished.is_err() {
            debug!("some reviews did not finish in time");
        }
        connections.cancel().await;
    }
}

async fn serve(
    stream: TcpStream,
    tls_config: CurrentTlsConfig,
    mut answerer: RequestAnswerer,
    limits: WebhookLimits,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // Responses are small; waiting to fill a packet would only delay them.
    stream.set_nodelay(true)?;
    let Some(tls_config) = tls_config else {
        let stream = IdleTimeoutStream::new(stream, &limits);
        return serve_http1(stream, answerer, &limits, watcher).await;
    };
    let config = Arc::clone(&tls_config.borrow());
    let accepting = TlsAcceptor::from(config).accept(stream);
    let stream = tokio::time::timeout(limits.handshake, accepting).await??;
    let (_, tls) = stream.get_ref();
    answerer.certificate = tls
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|first| Certificate::from_der(first).ok())
        .map(Arc::new);
    let http2 = tls.alpn_protocol() == Some(b"h2");
    let stream = IdleTimeoutStream::new(stream, &limits);
    if !http2 {
        return serve_http1(stream, answerer, &limits, watcher).await;
    }
    let answer = service_fn(|request| answerer.clone().answer(request));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.idle / 4)
        .keep_alive_timeout(limits.idle / 4)
        .max_header_list_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), answer);
    Ok(watcher.watch(connection).await?)
}

async fn serve_http1<S>(
    stream: IdleTimeoutStream<S>,
    answerer: RequestAnswerer,
    limits: &WebhookLimits,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(|request| answerer.clone().answer(request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(128 * 1024)
        .serve_connection(TokioIo::new(stream), answer);
    Ok(watcher.watch(connection).await?)
}

// === impl IdleTimeoutStream ===

impl<S> IdleTimeoutStream<S> {
    /// The first bytes have to come as soon as a handshake.
    fn new(stream: S, limits: &WebhookLimits) -> Self {
        let first = limits.handshake.min(limits.idle);
        Self {
            stream,
            idle: limits.idle,
            deadline: Box::pin(tokio::time::sleep(first)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            if buffer.filled().len() > before {
                let deadline = Instant::now() + self.idle;
                self.deadline.as_mut().reset(deadline);
            }
            return read;
        }
        match self.deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
