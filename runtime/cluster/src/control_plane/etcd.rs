//! Compacts etcd through its JSON gateway.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// Compacts up to the current revision.
pub(super) async fn compact(url: &str) -> Result<(), String> {
    let status = post(url, "/v3/maintenance/status", &json!({})).await?;
    let revision = &status["header"]["revision"];
    if !revision.is_string() {
        return Err(format!("etcd reports no revision: {status}"));
    }
    post(
        url,
        "/v3/kv/compaction",
        &json!({"revision": revision, "physical": true}),
    )
    .await?;
    Ok(())
}

async fn post(url: &str, path: &str, body: &Value) -> Result<Value, String> {
    let failed = |error: &dyn std::fmt::Display| format!("request {path} from etcd: {error}");
    let authority = url.trim_start_matches("http://");
    let stream = TcpStream::connect(authority)
        .await
        .map_err(|error| failed(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(path)
        .header(http::header::HOST, authority)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| failed(&error))?;
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| failed(&error))?;
    let status = response.status();
    let response = response
        .into_body()
        .collect()
        .await
        .map_err(|error| failed(&error))?
        .to_bytes();
    connection.abort();
    if !status.is_success() {
        return Err(failed(&format!(
            "{status}: {}",
            String::from_utf8_lossy(&response)
        )));
    }
    serde_json::from_slice(&response).map_err(|error| failed(&error))
}
