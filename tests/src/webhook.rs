//! An admission webhook on loopback, which the API server calls.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use tokio_rustls::rustls::{self, ServerConfig, crypto};

use crate::pki::{self, Authority};

/// The reply of a webhook to an admission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookReply {
    /// The request is allowed.
    Allow,
    /// The request is denied with this message.
    Deny(String),
    /// The request is allowed, changed by this JSON patch.
    Patch(Value),
}

/// A running webhook, which ends with this value.
#[derive(Debug)]
pub struct AdmissionWebhook {
    address: SocketAddr,
    authority: String,
    requests: Arc<Mutex<Vec<Value>>>,
    serving: tokio::task::JoinHandle<()>,
}

/// The reasons why a webhook did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The certificate could not be made.
    #[error("make the webhook's certificate")]
    Certificate(#[from] pki::Error),
    /// The certificate could not be read.
    #[error("read the webhook's certificate")]
    Pem(#[from] pem::Error),
    /// The certificate cannot be served.
    #[error("serve the webhook's certificate")]
    Tls(#[from] rustls::Error),
    /// There is no free port on loopback.
    #[error("listen on loopback")]
    Listen(#[from] io::Error),
}

// === impl AdmissionWebhook ===

impl AdmissionWebhook {
    /// Starts a webhook; `decide` gets the `request` of each admission review.
    pub async fn start(
        decide: impl Fn(&Value) -> WebhookReply + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let authority = Authority::fresh()?;
        let acceptor = acceptor(&authority)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::default());
        let serving = tokio::spawn(serve(
            listener,
            acceptor,
            Arc::new(decide),
            Arc::clone(&requests),
        ));
        Ok(Self {
            address,
            authority: authority.certificate().to_owned(),
            requests,
            serving,
        })
    }

    /// The `clientConfig` for a webhook configuration.
    pub fn client_config(&self) -> Value {
        let bundle = ByteString(self.authority.clone().into_bytes());
        json!({"url": format!("https://{}/", self.address), "caBundle": bundle})
    }

    /// Every admission request so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for AdmissionWebhook {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn acceptor(authority: &Authority) -> Result<TlsAcceptor, Error> {
    let server = authority.loopback_server()?;
    let chain = vec![CertificateDer::from_pem_slice(
        server.certificate.as_bytes(),
    )?];
    let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn serve<D>(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    decide: Arc<D>,
    requests: Arc<Mutex<Vec<Value>>>,
) where
    D: Fn(&Value) -> WebhookReply + Send + Sync + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    continue;
                };
                let (acceptor, decide, requests) =
                    (acceptor.clone(), Arc::clone(&decide), Arc::clone(&requests));
                connections.spawn(async move {
                    // A failed handshake is the client's error, which the test gets from it.
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(|request| review(request, &*decide, &requests));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn review(
    request: Request<Incoming>,
    decide: &(impl Fn(&Value) -> WebhookReply + Sync),
    requests: &Mutex<Vec<Value>>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let request = &review["request"];
    requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request.clone());
    let mut response = json!({"uid": request["uid"], "allowed": true});
    match decide(request) {
        WebhookReply::Allow => {}
        WebhookReply::Deny(message) => {
            response["allowed"] = json!(false);
            response["status"] = json!({"code": 403, "message": message});
        }
        WebhookReply::Patch(patch) => {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(ByteString(patch.to_string().into_bytes()));
        }
    }
    let reply = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response,
    });
    let mut response = Response::new(Full::new(Bytes::from(reply.to_string())));
    response.headers_mut().insert(
        http::header::CONTENT_TYPE,
        http::HeaderValue::from_static("application/json"),
    );
    Ok(response)
}
