//! The client certificate of the API server and the user of a request, as webhooks get them.

use http::{Request, header};
use kopf_runtime::WebhookHandler;
use kopf_runtime::admission::{ClientVerification, Server, Webhooks};
use kopf_tests::pki::Authority;
use kopf_tests::{PrivateControlPlane, Sandbox, TestFailure, TestResult};
use serde_json::json;
use tempfile::TempDir;

use super::configuration::free_port;
use super::fixture::WebhookFixture;

const TOKEN: &str = "Bearer let-me-in";

/// Files with which an API server authenticates to the webhooks on a port.
struct ApiServerCredentials {
    folder: TempDir,
}

impl ApiServerCredentials {
    fn for_webhooks_on(port: u16) -> Result<Self, TestFailure> {
        let credentials = Self {
            folder: tempfile::tempdir()?,
        };
        let authority = Authority::fresh()?;
        let api_server = authority.client("the-api-server", Some("control-plane"))?;
        let path = |name| credentials.path(name);
        std::fs::write(path("clients.pem"), authority.certificate())?;
        std::fs::write(path("api-server.pem"), api_server.certificate)?;
        std::fs::write(path("api-server.key"), api_server.key)?;
        let user = json!({
            "client-certificate": path("api-server.pem"),
            "client-key": path("api-server.key"),
            "token": TOKEN.trim_start_matches("Bearer "),
        });
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config",
            "users": [{"name": format!("localhost:{port}"), "user": user}],
        });
        std::fs::write(path("kubeconfig"), kubeconfig.to_string())?;
        let plugin = |name| {
            json!({"name": name, "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": path("kubeconfig"),
            }})
        };
        let plugins = ["ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"].map(plugin);
        let admission = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": plugins,
        });
        std::fs::write(path("admission.json"), admission.to_string())?;
        Ok(credentials)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn flag(&self) -> String {
        let file = self.path("admission.json");
        format!("--admission-control-config-file={}", file.display())
    }
}

#[tokio::test]
async fn webhooks_get_the_client_certificate_and_the_user_of_a_request() -> TestResult {
    let port = free_port()?;
    let credentials = ApiServerCredentials::for_webhooks_on(port)?;
    let plane = PrivateControlPlane::start_with(&[&credentials.flag()]).await?;
    let fixture =
        WebhookFixture::in_sandbox(Sandbox::open_on(plane.handle(), "callers").await?).await?;
    let verification = ClientVerification::Required {
        authority: credentials.path("clients.pem").into(),
    };
    let server = Server::local("localhost")
        .port(port)
        .verify_clients(verification);
    let resource = fixture
        .with_check(WebhookHandler::new("check").param(json!({"limit": [1, 2]})))
        .mutate(
            WebhookHandler::new("complete").param("anything"),
            |it, cx| Box::pin(it.complete(cx)),
        )
        .validate(WebhookHandler::new("plain"), |it, cx| {
            Box::pin(it.check(cx))
        });
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .server(server);
    let operator = fixture.start_and_wait(resource, webhooks).await?;

    let uri = format!(
        "/apis/{}/v1/namespaces/{}/widgets",
        fixture.sandbox.group(),
        fixture.sandbox.namespace()
    );
    let body = json!({
        "apiVersion": format!("{}/v1", fixture.sandbox.group()), "kind": "Widget",
        "metadata": {"name": "one"}, "spec": {},
    });
    let request = Request::post(uri)
        .header(header::CONTENT_TYPE, "application/json")
        .header("Impersonate-User", "alice")
        .header("Impersonate-Uid", "0815")
        .header("Impersonate-Group", "system:masters")
        .header("Impersonate-Group", "friends")
        .header("Impersonate-Extra-Reason", "a test")
        .body(kube::client::Body::from(body.to_string().into_bytes()))?;
    assert_eq!(fixture.sandbox.client().send(request).await?.status(), 201);

    let mut seen = fixture.recorder.reviews_of("one");
    seen.sort_by(|one, other| one.webhook.cmp(&other.webhook));
    let params: Vec<_> = seen
        .iter()
        .map(|review| (review.webhook.as_str(), review.param.clone()))
        .collect();
    assert_eq!(
        params,
        [
            ("check", Some(json!({"limit": [1, 2]}))),
            ("complete", Some(json!("anything"))),
            ("plain", None),
        ]
    );
    for review in seen {
        let user = &review.caller.user;
        assert_eq!((&*user.username, &*user.uid), ("alice", "0815"));
        for group in ["system:masters", "friends"] {
            assert!(user.groups.iter().any(|it| it == group), "{user:?}");
        }
        assert_eq!(user.extra["reason"], ["a test"]);
        assert_eq!(review.client.as_deref(), Some("the-api-server"));
        let header_value = |name: header::HeaderName| review.caller.headers[name].to_str();
        assert_eq!(header_value(header::AUTHORIZATION)?, TOKEN);
        assert_eq!(
            header_value(header::USER_AGENT)?,
            "kube-apiserver-admission"
        );
        assert_eq!(header_value(header::CONTENT_TYPE)?, "application/json");
    }
    operator.stop().await
}
