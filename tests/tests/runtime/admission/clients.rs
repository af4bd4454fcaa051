//! Clients of the webhook server other than the API server.

use std::time::Duration;

use futures::future::BoxFuture;
use kopf_runtime::admission::{
    Address, AuthoritySource, ClientVerification, Protocol, ServeError, Server, Tunnel,
    WebhookLimits, WebhookServer, WebhookSession, Webhooks,
};
use kopf_runtime::{
    AdmissionResult, HookHandler, Hooks, Namespaces, Operator, ValidationContext, WebhookHandler,
};
use kopf_tests::pki::{Authority, Certified};
use kopf_tests::sandbox::eventually;
use kopf_tests::{TestFailure, TestResult};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::configuration::free_port;
use super::fixture::{ReviewRecorder, RunningWebhookOperator, WebhookFixture};

fn review(fixture: &WebhookFixture, name: &str) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "name": name,
            "namespace": fixture.sandbox.namespace(), "userInfo": {"username": "curl"},
            "resource": {"group": fixture.sandbox.group(), "version": "v1", "resource": "widgets"},
            "object": {"spec": {}},
        },
    })
    .to_string()
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer me\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Sends bytes, and reads until the server closes the connection.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    // The server may hang up before it has read everything.
    let _ = stream.write_all(bytes).await;
    let _ = stream.flush().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

async fn send(port: u16, bytes: &[u8]) -> Result<String, TestFailure> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    Ok(exchange(stream, bytes).await)
}

async fn listening(port: u16) -> TestResult {
    eventually("the server listens", async || {
        TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await?;
    Ok(())
}

async fn plain(
    fixture: &WebhookFixture,
    limits: WebhookLimits,
) -> Result<(u16, RunningWebhookOperator), TestFailure> {
    let port = free_port()?;
    let server = Server::local("localhost")
        .port(port)
        .protocol(Protocol::Http)
        .limits(limits);
    let webhooks = Webhooks::default().unmanaged().server(server);
    let operator = fixture.start(fixture.with_check(WebhookHandler::new("check")), webhooks);
    listening(port).await?;
    Ok((port, operator))
}

fn path(fixture: &WebhookFixture) -> String {
    format!("/validate/{}/widgets/check", fixture.sandbox.group())
}

#[tokio::test]
async fn requests_other_than_reviews_get_an_error_response() -> TestResult {
    let fixture = WebhookFixture::new("strangers").await?;
    let limits = WebhookLimits {
        body_bytes: 10_000,
        body: Duration::from_millis(500),
        idle: Duration::from_millis(900),
        ..WebhookLimits::default()
    };
    let (port, operator) = plain(&fixture, limits).await?;
    let path = path(&fixture);
    let good = review(&fixture, "good");
    let deep = "[".repeat(4000);
    let other = good.replace("\"widgets\"", "\"gadgets\"");
    let large = "x".repeat(20_000);
    let conversion = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "1", "desiredAPIVersion": "a/v2", "objects": []}}"#;
    let endless = format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("4e20\r\n{large}\r\n");
    let slow = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    for (bytes, status, message) in [
        (post(&path, &good), "200 OK", "\"allowed\":true"),
        (
            post(&format!("{path}?timeout=1s"), &good),
            "200 OK",
            "\"allowed\":true",
        ),
        (
            post("/", &good),
            "404 Not Found",
            "there is no webhook at `/`",
        ),
        (
            post(
                &format!("/convert/{}/widgets", fixture.sandbox.group()),
                conversion,
            ),
            "404 Not Found",
            "nothing is converted at `/convert/",
        ),
        (
            post(&path, conversion),
            "400 Bad Request",
            "not an AdmissionReview",
        ),
        (
            post(&path, &other),
            "404 Not Found",
            "is not about `gadgets.",
        ),
        (
            post(&path, "{"),
            "400 Bad Request",
            "not an AdmissionReview",
        ),
        (
            post(&path, &deep),
            "400 Bad Request",
            "not an AdmissionReview",
        ),
        (
            post(&path, "{}"),
            "400 Bad Request",
            "missing field `apiVersion`",
        ),
        (
            format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
            "405",
            "with POST",
        ),
        (
            post(&path, &large),
            "413 Payload Too Large",
            "10000 bytes at most",
        ),
        (
            endless + &chunk,
            "413 Payload Too Large",
            "10000 bytes at most",
        ),
        (slow, "408 Request Timeout", "did not arrive within"),
        (
            post(&path, &good.replace("\"uid\"", "\"id\"")),
            "400 Bad Request",
            "missing field `uid`",
        ),
        (
            post(&path, &good).replacen(
                "Host: x",
                &format!("Host: x\r\nLarge: {}", "x".repeat(500_000)),
                1,
            ),
            "431 Request Header Fields Too Large",
            "",
        ),
        (
            // The API server sends JSON; what else says so is no matter.
            post(&path, &good).replacen("Host: x", "Host: x\r\nContent-Type: text/plain", 1),
            "200 OK",
            "\"allowed\":true",
        ),
        (
            "\u{1}\u{2}garbage\r\n\r\n".to_owned(),
            "400 Bad Request",
            "",
        ),
    ] {
        let answer = send(port, bytes.as_bytes()).await?;
        let sent: String = bytes.chars().take(60).collect();
        assert!(
            answer.contains(status) && answer.contains(message),
            "{sent}: {answer}"
        );
    }
    let mut invalid = post(&path, "1234").into_bytes();
    invalid.truncate(invalid.len() - 4);
    invalid.extend(b"\"\xff\xfe\"");
    let answer = send(port, &invalid).await?;
    assert!(answer.contains("400 Bad Request"), "not UTF-8: {answer}");
    assert_eq!(
        send(port, b"").await?,
        "",
        "the server closes the connection of a silent client"
    );
    assert_eq!(
        send(port, b"POST / HT").await?,
        "",
        "and of one with an incomplete request"
    );
    assert_eq!(fixture.recorder.reviews_of("good").len(), 3);
    operator.stop().await
}

#[tokio::test]
async fn silent_and_slow_clients_do_not_starve_reviews() -> TestResult {
    let fixture = WebhookFixture::new("starved").await?;
    let limits = WebhookLimits {
        body_bytes: 10_000,
        total_bytes: 20_000,
        connections: 8,
        handshake: Duration::from_secs(60),
        body: Duration::from_secs(60),
        idle: Duration::MAX,
        ..WebhookLimits::default()
    };
    let (port, operator) = plain(&fixture, limits).await?;
    let path = path(&fixture);
    let slow = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 9000\r\n\r\nabc");
    let request = post(&path, &review(&fixture, "good"));
    let mut clients = Vec::new();
    for sent in [slow.as_str(), ""] {
        for _ in 0..10 {
            let mut client = TcpStream::connect(("127.0.0.1", port)).await?;
            client.write_all(sent.as_bytes()).await?;
            clients.push(client);
        }
        let answer = tokio::time::timeout(Duration::from_secs(20), send(port, request.as_bytes()));
        let answer = answer.await.expect("reviews are answered")?;
        assert!(answer.contains("\"allowed\":true"), "{sent}: {answer}");
    }
    drop(clients);
    operator.stop().await
}

#[tokio::test]
async fn running_reviews_are_answered_when_the_operator_stops() -> TestResult {
    async fn slow(recorder: &ReviewRecorder, cx: &mut ValidationContext<Value>) -> AdmissionResult {
        recorder.check(cx).await?;
        let port = cx.param().and_then(Value::as_u64).unwrap_or_default();
        let port = u16::try_from(port)?;
        // The review has a limit of its own.
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cx.warn("late but there");
        Ok(())
    }
    let fixture = WebhookFixture::new("drain").await?;
    let port = free_port()?;
    let server = Server::local("localhost")
        .port(port)
        .protocol(Protocol::Http);
    let resource = fixture
        .resource()
        .validate(WebhookHandler::new("check").param(port), |recorder, cx| {
            Box::pin(slow(recorder, cx))
        });
    let operator = fixture.start(resource, Webhooks::default().unmanaged().server(server));
    listening(port).await?;
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = post(&path(&fixture), &review(&fixture, "one"));
    stream.write_all(request.as_bytes()).await?;
    eventually("the review has begun", async || {
        (!fixture.recorder.reviews_of("one").is_empty()).then_some(())
    })
    .await?;
    let (answer, stopped) = tokio::join!(exchange(stream, b""), operator.stop());
    stopped?;
    assert!(answer.contains("late but there"), "{answer}");
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    Ok(())
}

async fn tls_as(
    name: &'static str,
    port: u16,
    trusted: &str,
    client: Option<&Certified>,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, TestFailure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes())?)?;
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(client) => builder.with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(
                client.certificate.as_bytes(),
            )?],
            PrivateKeyDer::from_pem_slice(client.key.as_bytes())?,
        )?,
    };
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let name = ServerName::try_from(name)?;
    Ok(TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?)
}

#[tokio::test]
async fn client_certificates_are_verified_if_configured() -> TestResult {
    let fixture = WebhookFixture::new("client-certs").await?;
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name);
    let clients = Authority::fresh()?;
    std::fs::write(file("clients.pem"), clients.certificate())?;
    let others = folder.path().join("authorities");
    std::fs::create_dir(&others)?;
    std::fs::write(others.join("a.pem"), Authority::fresh()?.certificate())?;
    std::fs::write(others.join("b.pem"), clients.certificate())?;
    std::fs::write(others.join("..data"), "left out")?;
    let known = clients.client("kube-apiserver", None)?;
    let stranger = Authority::fresh()?.client("stranger", None)?;
    let required = |authority| ClientVerification::Required { authority };
    for (verification, without) in [
        (
            ClientVerification::Optional {
                authority: file("clients.pem").into(),
            },
            true,
        ),
        (required(file("clients.pem").into()), false),
        (required(AuthoritySource::Folder(others)), false),
        (
            required(AuthoritySource::Pem(clients.certificate().to_owned())),
            false,
        ),
    ] {
        let port = free_port()?;
        let server = Server::local("localhost")
            .port(port)
            .write_ca(file("ca.pem"))
            .verify_clients(verification);
        let webhooks = Webhooks::default().unmanaged().server(server);
        let operator = fixture.start(fixture.with_check(WebhookHandler::new("check")), webhooks);
        listening(port).await?;
        let trusted = eventually("the authority is written", async || {
            std::fs::read_to_string(file("ca.pem")).ok()
        })
        .await?;
        std::fs::remove_file(file("ca.pem"))?;
        for (client, name, answered) in [
            (Some(&known), "known", true),
            (None, "anonymous", without),
            (Some(&stranger), "stranger", false),
        ] {
            let name = format!("{name}-{port}");
            let request = post(&path(&fixture), &review(&fixture, &name));
            // In TLS 1.3 the server may reject the certificate after the client has connected.
            let answer = match tls_as("localhost", port, &trusted, client).await {
                Ok(stream) => exchange(stream, request.as_bytes()).await,
                Err(_) => String::new(),
            };
            assert_eq!(answer.contains("200 OK"), answered, "{name}: {answer}");
            let seen = fixture.recorder.reviews_of(&name);
            assert_eq!(seen.len(), usize::from(answered));
            let expected = client.map(|_| "kube-apiserver".to_owned());
            assert!(seen.iter().all(|review| review.client == expected));
        }
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_tunnel_publishes_the_url_that_its_program_prints() -> TestResult {
    let fixture = WebhookFixture::new("tunnel").await?;
    let script = "echo starting for $0; echo url=https://first.example; echo noise; \
                  echo url=https://$0.example/; exec sleep 600";
    let tunnel = Tunnel::new("sh", ["-c", script, "{port}"]).after("url=");
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .custom(tunnel);
    let operator = fixture.start(fixture.with_check(WebhookHandler::new("check")), webhooks);
    let url = eventually("the public address is configured", async || {
        let configuration = fixture
            .configuration("ValidatingWebhookConfiguration")
            .await
            .ok()??;
        let url = configuration.data["webhooks"][0]["clientConfig"]["url"].as_str()?;
        (!url.contains("first")).then(|| url.to_owned())
    })
    .await?;
    let host = url.split('/').nth(2).unwrap_or_default();
    let port: u16 = host.trim_end_matches(".example").parse()?;
    assert!(url.ends_with(&path(&fixture)), "{url}");
    let answer = send(
        port,
        post(&path(&fixture), &review(&fixture, "one")).as_bytes(),
    )
    .await?;
    assert!(answer.contains("\"allowed\":true"), "{answer}");
    operator.stop().await?;

    let gone = Tunnel::new("sh", ["-c", "echo url=https://x.example; exit 3"]);
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .custom(gone);
    let error = fixture
        .start(fixture.with_check(WebhookHandler::new("check")), webhooks)
        .error()
        .await;
    assert!(format!("{error:?}").contains("has ended"), "{error:?}");
    Ok(())
}

/// A server of a user: it runs ours, and announces the address after it has noted it.
#[derive(Clone, Default)]
struct NotingServer {
    announced: Arc<Mutex<Vec<Address>>>,
}

impl WebhookServer for NotingServer {
    fn serve(&self, session: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>> {
        Box::pin(async move {
            let (inner, mut configs) = session.divert();
            let announcing = async {
                while let Some(config) = configs.next().await {
                    let mut announced = self.announced.lock().unwrap();
                    announced.push(config.address.clone());
                    session.announce(config);
                }
            };
            let server = Server::local("localhost").path("own");
            let (served, ()) = tokio::join!(server.serve(inner), announcing);
            served
        })
    }
}

#[tokio::test]
async fn webhooks_are_served_by_a_server_of_the_user() -> TestResult {
    let fixture = WebhookFixture::new("own-server").await?;
    let server = NotingServer::default();
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .custom(server.clone());
    let operator = fixture
        .start_and_wait(fixture.with_check(WebhookHandler::new("check")), webhooks)
        .await?;
    let announced = server.announced.lock().unwrap().clone();
    let [Address::Url(url)] = announced.as_slice() else {
        panic!("{announced:?}");
    };
    assert!(url.ends_with("/own"), "{url}");
    operator.stop().await?;

    struct EndingServer;
    impl WebhookServer for EndingServer {
        fn serve(&self, _: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>> {
            Box::pin(async { Err(ServeError::message("the tunnel is closed")) })
        }
    }
    let webhooks = Webhooks::default().unmanaged().custom(EndingServer);
    let operator = fixture.start(fixture.with_check(WebhookHandler::new("check")), webhooks);
    let error = operator.error().await;
    assert!(
        format!("{error:?}").contains("the tunnel is closed"),
        "{error:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_startup_handler_decides_how_webhooks_are_served() -> TestResult {
    let fixture = WebhookFixture::new("startup-server").await?;
    let hooks = Hooks::new(&fixture.recorder).startup(
        HookHandler::new("serve").param(fixture.configuration_name()),
        |_, cx| {
            Box::pin(async {
                let name = cx.param().and_then(Value::as_str).unwrap_or_default();
                let server = Server::local("localhost").path("chosen");
                let webhooks = Webhooks::default().managed(name).server(server);
                *cx.webhooks() = webhooks;
                Ok(())
            })
        },
    );
    let operator = Operator::new("webhooks")
        .handlers(hooks.build())
        .resource(fixture.with_check(WebhookHandler::new("check")).build())
        .namespaces(Namespaces::Only(vec![
            fixture.sandbox.namespace().to_owned(),
        ]))
        .webhooks(Webhooks::default().unmanaged());
    let operator = operator.spawn(fixture.sandbox.client());
    fixture.wait_until_called().await?;
    let configuration = fixture
        .configuration("ValidatingWebhookConfiguration")
        .await?;
    let url = configuration.map(|it| it.data["webhooks"][0]["clientConfig"]["url"].clone());
    let url = url.unwrap_or_default().to_string();
    assert!(url.contains("/chosen/validate/"), "{url}");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_certificate_is_valid_for_all_names_of_the_server() -> TestResult {
    let fixture = WebhookFixture::new("known-as").await?;
    let folder = tempfile::tempdir()?;
    let ca = folder.path().join("ca.pem");
    let port = free_port()?;
    let server = Server::local("localhost")
        .port(port)
        .also_known_as("hooks.example")
        .write_ca(&ca);
    let webhooks = Webhooks::default().unmanaged().server(server);
    let operator = fixture.start(fixture.with_check(WebhookHandler::new("check")), webhooks);
    listening(port).await?;
    let trusted = eventually("the authority is written", async || {
        std::fs::read_to_string(&ca).ok()
    })
    .await?;
    for (name, is_known) in [
        ("localhost", true),
        ("hooks.example", true),
        ("other.example", false),
    ] {
        let connected = tls_as(name, port, &trusted, None).await;
        assert_eq!(connected.is_ok(), is_known, "{name}");
    }
    operator.stop().await
}
