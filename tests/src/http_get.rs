//! The simplest of HTTP clients, for endpoints on loopback: one request, one connection.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::failure::Failure;
use crate::operator::Operator;

/// An endpoint of an operator, on loopback.
#[derive(Debug, Clone)]
pub struct HealthEndpoint {
    address: SocketAddr,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The head, with the status line.
    pub head: String,
    /// The body.
    pub body: String,
}

impl HealthEndpoint {
    /// The endpoint of an operator, as soon as it is served.
    pub async fn of(operator: &Operator) -> Result<Self, Failure> {
        let line = operator.wait_for_log("health is served at http://").await?;
        let address = line.rsplit_once("http://").map_or("", |(_, rest)| rest);
        let address = address
            .split_once('/')
            .map_or(address, |(address, _)| address);
        Ok(Self {
            address: address.parse()?,
        })
    }

    /// The endpoint at an address that nobody else uses now.
    pub async fn unused() -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self {
            address: listener.local_addr()?,
        })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks for what is at a path.
    pub async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        ))
        .await
    }

    /// Sends these bytes and reads to the end.
    pub async fn send(&self, request: &str) -> Result<Answer, Failure> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await?;
        let text = String::from_utf8_lossy(&text);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(Answer {
            status: status.unwrap_or_default(),
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }
}

impl Answer {
    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}
