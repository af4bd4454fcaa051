//! A minimal HTTP client for an operator's health and metrics endpoint: one connection per request.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::child_process::ChildProcess;
use crate::test_failure::TestFailure;

/// A client of the endpoint of one operator.
#[derive(Debug, Clone)]
pub struct HealthClient {
    address: SocketAddr,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// The status line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

impl HealthClient {
    /// Waits until the operator logs the address of its endpoint.
    pub async fn of(operator: &ChildProcess) -> Result<Self, TestFailure> {
        let line = operator.wait_for_log("health is served at http://").await?;
        let address = line.rsplit_once("http://").map_or("", |(_, rest)| rest);
        let address = address
            .split_once('/')
            .map_or(address, |(address, _)| address);
        Ok(Self {
            address: address.parse()?,
        })
    }

    /// A client for an endpoint on a port that is free now.
    pub async fn on_free_port() -> Result<Self, TestFailure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self {
            address: listener.local_addr()?,
        })
    }

    /// The address of the endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests a path.
    pub async fn get(&self, path: &str) -> Result<HttpResponse, TestFailure> {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        ))
        .await
    }

    /// Sends a raw request and reads until the server closes the connection.
    pub async fn send(&self, request: &str) -> Result<HttpResponse, TestFailure> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await?;
        let text = String::from_utf8_lossy(&text);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(HttpResponse {
            status: status.unwrap_or_default(),
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }
}

impl HttpResponse {
    /// The body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}
