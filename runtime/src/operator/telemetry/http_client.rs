//! The HTTP client of the trace exporter, on a thread that blocking handlers cannot stop.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// The time that the collector has to accept a batch.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The size of a response that is read at most.
const RESPONSE_BYTES: usize = 64 * 1024;

/// Sends batches of spans by plain HTTP.
#[derive(Debug)]
pub(super) struct TraceHttpClient {
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

/// The reason for which a batch was not sent.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("traces are sent by http:// only, not to {0}: run a collector beside the operator")]
    Scheme(Uri),
    #[error("there is no host in {0}")]
    Host(Uri),
    #[error("the collector took too long")]
    Timeout,
    #[error("the operator is about to end")]
    Ending,
}

impl TraceHttpClient {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("telemetry")
            .enable_all()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }
}

impl HttpClient for TraceHttpClient {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let runtime = self.runtime.as_ref().ok_or(Error::Ending)?;
            let sending = runtime.spawn(async {
                let sent = tokio::time::timeout(REQUEST_TIMEOUT, send(request)).await;
                sent.map_err(|_| Error::Timeout)?
            });
            sending.await?
        })
    }
}

impl Drop for TraceHttpClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let uri = request.uri().clone();
    if uri.scheme_str() != Some("http") {
        return Err(Error::Scheme(uri).into());
    }
    let authority = uri.authority().ok_or_else(|| Error::Host(uri.clone()))?;
    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let origin = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = origin.parse()?;
    request
        .headers_mut()
        .insert(header::HOST, authority.as_str().parse()?);
    let exchange = async {
        let answer = sender.send_request(request.map(Full::new)).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, RESPONSE_BYTES)
            .collect()
            .await?
            .to_bytes();
        Ok(Response::from_parts(head, body))
    };
    tokio::pin!(exchange);
    tokio::select! {
        answer = &mut exchange => answer,
        ended = connection => {
            ended?;
            exchange.await
        }
    }
}
