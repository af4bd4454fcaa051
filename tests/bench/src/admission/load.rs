//! Connections that send the same review again and again, as fast as possible or at a pace.

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

/// Whom to ask what.
pub(crate) struct Target {
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) authority: String,
    pub(crate) body: String,
}

/// A number of clients.
pub(crate) struct Load {
    client: Arc<Client>,
    connections: u32,
}

struct Client {
    port: u16,
    path: String,
    body: Bytes,
    tls: TlsConnector,
}

/// What came out.
pub(crate) struct Measured {
    pub(crate) reviews: u64,
    elapsed: Duration,
    latencies: Vec<Duration>,
}

/// When a client stops, and how fast it goes.
#[derive(Clone)]
enum Plan {
    Until(Instant),
    Paced { until: Instant, pause: Duration },
    Count(Arc<AtomicI64>),
}

impl Load {
    pub(crate) fn new(target: &Target, connections: u32) -> Result<Self, TestFailure> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(target.authority.as_bytes())?)?;
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = Client {
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

    /// As fast as possible, for a while.
    pub(crate) async fn peak(&self, duration: Duration) -> Result<Measured, TestFailure> {
        self.run(|_| Plan::Until(Instant::now() + duration)).await
    }

    /// At a rate, for a while.
    pub(crate) async fn paced(&self, rate: f64, duration: Duration) -> Result<Measured, TestFailure> {
        let pause = Duration::from_secs_f64(f64::from(self.connections) / rate);
        let until = Instant::now() + duration;
        self.run(|_| Plan::Paced { until, pause }).await
    }

    /// So many reviews.
    pub(crate) async fn count(&self, reviews: u64) -> Result<Measured, TestFailure> {
        let left = Arc::new(AtomicI64::new(i64::try_from(reviews)?));
        self.run(|_| Plan::Count(Arc::clone(&left))).await
    }

    async fn run(&self, plan: impl Fn(u32) -> Plan) -> Result<Measured, TestFailure> {
        let started = Instant::now();
        let mut clients = JoinSet::new();
        for number in 0..self.connections {
            clients.spawn(Arc::clone(&self.client).ask(plan(number), number));
        }
        let mut latencies = Vec::new();
        while let Some(done) = clients.join_next().await {
            latencies.extend(done??);
        }
        Ok(Measured {
            reviews: latencies.len() as u64,
            elapsed: started.elapsed(),
            latencies,
        })
    }
}

impl Client {
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

    async fn ask(self: Arc<Self>, plan: Plan, number: u32) -> Result<Vec<Duration>, TestFailure> {
        let mut connection = self.connect().await?;
        let mut latencies = Vec::new();
        let mut due = Instant::now();
        if let Plan::Paced { pause, .. } = plan {
            // Not all at the same moment.
            due += pause * number / 16;
        }
        loop {
            let begun = match &plan {
                Plan::Until(until) if Instant::now() >= *until => break,
                Plan::Count(left) if left.fetch_sub(1, Ordering::Relaxed) <= 0 => break,
                Plan::Until(_) | Plan::Count(_) => Instant::now(),
                Plan::Paced { until, pause } => {
                    if due >= *until {
                        break;
                    }
                    tokio::time::sleep_until(due.into()).await;
                    // Who has to wait for an answer asks late, and that counts.
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
            let answer = response.into_body().collect().await?.to_bytes();
            latencies.push(begun.elapsed());
            let allowed = answer.windows(6).any(|text| text == b"\"allow");
            if !status.is_success() || !allowed {
                return Err(TestFailure::new(format!("{status}: {answer:?}")));
            }
        }
        Ok(latencies)
    }
}

impl Measured {
    pub(crate) fn rate(&self) -> f64 {
        self.reviews as f64 / self.elapsed.as_secs_f64()
    }

    /// Milliseconds.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let place = (sorted.len() as f64 * percent / 100.0) as usize;
        let found = sorted.get(place.min(sorted.len().saturating_sub(1)));
        found.map_or(0.0, |latency| latency.as_secs_f64() * 1000.0)
    }
}
