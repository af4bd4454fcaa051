//! Connections that send the same admission review repeatedly, as fast as possible or at a rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kopf_tests::TestFailure;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// The address of a webhook, its CA certificate, and the review to send.
pub(crate) struct WebhookTarget {
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) authority: String,
    pub(crate) body: String,
}

/// A number of connections to one webhook.
pub(crate) struct Load {
    client: Arc<ReviewClient>,
    connections: u32,
}

struct ReviewClient {
    port: u16,
    path: String,
    body: Bytes,
    tls: TlsConnector,
}

/// The number of reviews and their latencies.
pub(crate) struct LoadResult {
    pub(crate) reviews: u64,
    elapsed: Duration,
    latencies: Vec<Duration>,
}

/// The end and the rate of a connection's requests.
#[derive(Clone)]
enum RequestSchedule {
    Until(Instant),
    Paced { until: Instant, pause: Duration },
    Count(Arc<AtomicI64>),
}

impl Load {
    pub(crate) fn new(target: &WebhookTarget, connections: u32) -> Result<Self, TestFailure> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(target.authority.as_bytes())?)?;
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = ReviewClient {
            port: target.port,
            path: target.path.clone(),
            body: Bytes::from(target.body.clone()),
            tls: TlsConnector::from(Arc::new(config)),
        };
        Ok(Self {
            client: Arc::new(client),
            connections,
        })
    }

    /// Sends reviews as fast as possible for this time.
    pub(crate) async fn peak(&self, duration: Duration) -> Result<LoadResult, TestFailure> {
        self.run(|_| RequestSchedule::Until(Instant::now() + duration))
            .await
    }

    /// Sends reviews at a rate for this time.
    pub(crate) async fn paced(
        &self,
        rate: f64,
        duration: Duration,
    ) -> Result<LoadResult, TestFailure> {
        let pause = Duration::from_secs_f64(f64::from(self.connections) / rate);
        let until = Instant::now() + duration;
        self.run(|_| RequestSchedule::Paced { until, pause }).await
    }

    /// Sends this many reviews.
    pub(crate) async fn count(&self, reviews: u64) -> Result<LoadResult, TestFailure> {
        let left = Arc::new(AtomicI64::new(i64::try_from(reviews)?));
        self.run(|_| RequestSchedule::Count(Arc::clone(&left)))
            .await
    }

    async fn run(
        &self,
        schedule: impl Fn(u32) -> RequestSchedule,
    ) -> Result<LoadResult, TestFailure> {
        let started = Instant::now();
        let mut clients = JoinSet::new();
        for number in 0..self.connections {
            clients.spawn(Arc::clone(&self.client).send_reviews(schedule(number), number));
        }
        let mut latencies = Vec::new();
        while let Some(done) = clients.join_next().await {
            latencies.extend(done??);
        }
        Ok(LoadResult {
            reviews: latencies.len() as u64,
            elapsed: started.elapsed(),
            latencies,
        })
    }
}

impl ReviewClient {
    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, TestFailure> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        let stream = self
            .tls
            .connect(ServerName::try_from("localhost")?, stream)
            .await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn send_reviews(
        self: Arc<Self>,
        schedule: RequestSchedule,
        number: u32,
    ) -> Result<Vec<Duration>, TestFailure> {
        let mut connection = self.connect().await?;
        let mut latencies = Vec::new();
        let mut due = Instant::now();
        if let RequestSchedule::Paced { pause, .. } = schedule {
            // Spreads the connections over the interval.
            due += pause * number / 16;
        }
        loop {
            let begun = match &schedule {
                RequestSchedule::Until(until) if Instant::now() >= *until => break,
                RequestSchedule::Count(left) if left.fetch_sub(1, Ordering::Relaxed) <= 0 => break,
                RequestSchedule::Until(_) | RequestSchedule::Count(_) => Instant::now(),
                RequestSchedule::Paced { until, pause } => {
                    if due >= *until {
                        break;
                    }
                    tokio::time::sleep_until(due.into()).await;
                    // The latency counts from the scheduled time, also if the last response was late.
                    let begun = due;
                    due += *pause;
                    begun
                }
            };
            connection.ready().await?;
            let request = Request::post(&self.path)
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::new(self.body.clone()))?;
            let response = connection.send_request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            latencies.push(begun.elapsed());
            let allowed = body.windows(6).any(|text| text == b"\"allow");
            if !status.is_success() || !allowed {
                return Err(TestFailure::new(format!("{status}: {body:?}")));
            }
        }
        Ok(latencies)
    }
}

impl LoadResult {
    pub(crate) fn rate(&self) -> f64 {
        self.reviews as f64 / self.elapsed.as_secs_f64()
    }

    /// The percentile of the latencies, in milliseconds.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let position = (sorted.len() as f64 * percent / 100.0) as usize;
        let found = sorted.get(position.min(sorted.len().saturating_sub(1)));
        found.map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
    }
}
