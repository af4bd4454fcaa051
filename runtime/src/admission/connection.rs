//! Connections: accepted as long as there is room, bounded in every respect, and let go in peace.

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

use super::http_request::{self, Desk};
use crate::task::UnnamedTasks;

/// What one client, and all clients together, may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a review. The API server stores objects of up to 1.5 MiB or so, and a review
    /// has two of them, with some blanks.
    pub body_bytes: usize,
    /// The size of all reviews that are being read or answered.
    pub total_bytes: usize,
    /// Connections at the same time.
    pub connections: usize,
    /// How long a client may take to establish a connection.
    pub handshake: Duration,
    /// How long a client may take to send a review.
    pub body: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
    /// How long reviews may take to finish when the operator stops.
    pub drain: Duration,
}

/// What the server shows its clients; nothing for plain HTTP.
pub(super) type Identity = Option<watch::Receiver<Arc<ServerConfig>>>;

/// An accept loop with everything that it needs.
pub(super) struct Reception {
    pub(super) listener: TcpListener,
    pub(super) identity: Identity,
    pub(super) desk: Arc<Desk>,
    pub(super) limits: Limits,
}

/// A stream that ends when nothing was read for a while.
struct Impatient<S> {
    stream: S,
    idle: Duration,
    deadline: Pin<Box<Sleep>>,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 7 * 1024 * 1024,
            total_bytes: 64 * 1024 * 1024,
            connections: 1024,
            handshake: Duration::from_secs(10),
            body: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            drain: Duration::from_secs(10),
        }
    }
}

// === impl Reception ===

impl Reception {
    /// Accepts connections until `over`, then lets the requests finish that have begun.
    pub(super) async fn run(self, over: &CancellationToken) {
        let room = Arc::new(Semaphore::new(self.limits.connections));
        let graceful = GracefulShutdown::new();
        let mut connections = UnnamedTasks::default();
        loop {
            let accepted = tokio::select! {
                () = over.cancelled() => break,
                () = connections.next_ended() => continue,
                accepted = async {
                    let place = Arc::clone(&room).acquire_owned().await;
                    (place, self.listener.accept().await)
                } => accepted,
            };
            let (place, Ok((stream, _))) = accepted else {
                // Out of file descriptors, most likely: some are going to be free again.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let served = serve(
                stream,
                self.identity.clone(),
                Arc::clone(&self.desk),
                self.limits.clone(),
                graceful.watcher(),
            );
            connections.spawn(async move {
                if let Err(error) = served.await {
                    debug!("a connection ended badly: {error}");
                }
                drop(place);
            });
        }
        drop(self.listener);
        let finished = tokio::time::timeout(self.limits.drain, graceful.shutdown()).await;
        if finished.is_err() {
            debug!("some reviews were not finished in time");
        }
        connections.cancel().await;
    }
}

async fn serve(
    stream: TcpStream,
    identity: Identity,
    desk: Arc<Desk>,
    limits: Limits,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    // Answers are small; waiting to fill a packet only delays them.
    stream.set_nodelay(true)?;
    let Some(identity) = identity else {
        let stream = Impatient::new(stream, limits.idle);
        return serve_http1(stream, desk, None, &limits, watcher).await;
    };
    let config = Arc::clone(&identity.borrow());
    let accepting = TlsAcceptor::from(config).accept(stream);
    let stream = tokio::time::timeout(limits.handshake, accepting).await??;
    let (_, tls) = stream.get_ref();
    let certificate = tls
        .peer_certificates()
        .and_then(|chain| chain.first())
        .and_then(|first| Certificate::from_der(first).ok())
        .map(Arc::new);
    let http2 = tls.alpn_protocol() == Some(b"h2");
    let stream = Impatient::new(stream, limits.idle);
    if !http2 {
        return serve_http1(stream, desk, certificate, &limits, watcher).await;
    }
    let answer =
        service_fn(|request| http_request::answer(Arc::clone(&desk), request, certificate.clone()));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(limits.idle / 4)
        .keep_alive_timeout(limits.idle / 4)
        .max_header_list_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), answer);
    Ok(watcher.watch(connection).await?)
}

async fn serve_http1<S>(
    stream: Impatient<S>,
    desk: Arc<Desk>,
    certificate: Option<Arc<Certificate>>,
    limits: &Limits,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer =
        service_fn(|request| http_request::answer(Arc::clone(&desk), request, certificate.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(128 * 1024)
        .serve_connection(TokioIo::new(stream), answer);
    Ok(watcher.watch(connection).await?)
}

// === impl Impatient ===

impl<S> Impatient<S> {
    fn new(stream: S, idle: Duration) -> Self {
        Self {
            stream,
            idle,
            deadline: Box::pin(tokio::time::sleep(idle)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
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
