//! Counts the bytes between an operator and the API server, encrypted as they are.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The bytes that are passed on at once.
const BUFFER: usize = 64 * 1024;

/// Passes connections on to the API server.
pub(super) struct CountingWire {
    address: SocketAddr,
    counts: Arc<WireCounts>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct WireCounts {
    sent: AtomicU64,
    received: AtomicU64,
}

/// The bytes so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WireBytes {
    /// From the operator.
    pub(super) sent: u64,
    /// To the operator.
    pub(super) received: u64,
}

// === impl CountingWire ===

impl CountingWire {
    /// Listens on loopback.
    pub(super) async fn start(api_server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let counts = Arc::<WireCounts>::default();
        let counted = Arc::clone(&counts);
        let accepting = tokio::spawn(async move {
            while let Ok((operator, _)) = listener.accept().await {
                tokio::spawn(pass(operator, api_server, Arc::clone(&counted)));
            }
        });
        Ok(Self {
            address,
            counts,
            accepting,
        })
    }

    /// The address for the operator.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn bytes(&self) -> WireBytes {
        WireBytes {
            sent: self.counts.sent.load(Ordering::Relaxed),
            received: self.counts.received.load(Ordering::Relaxed),
        }
    }
}

impl Drop for CountingWire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Passes one connection on until both sides have closed it.
async fn pass(operator: TcpStream, api_server: SocketAddr, counts: Arc<WireCounts>) {
    let Ok(server) = TcpStream::connect(api_server).await else {
        return;
    };
    // Small requests are not to wait for each other.
    for stream in [&operator, &server] {
        let _ = stream.set_nodelay(true);
    }
    let (from_operator, to_operator) = operator.into_split();
    let (from_server, to_server) = server.into_split();
    let sent = copy(from_operator, to_server, &counts.sent);
    let received = copy(from_server, to_operator, &counts.received);
    // The end of a connection needs no report: its client sees it.
    let _ = tokio::join!(sent, received);
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.shutdown().await;
        }
        count.fetch_add(read as u64, Ordering::Relaxed);
        to.write_all(&buffer[..read]).await?;
    }
}

// === impl WireBytes ===

impl std::ops::Sub for WireBytes {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
        }
    }
}
