//! Detection of the host name under which the cluster reaches webhooks on this machine.
//!
//! Only a local cluster can call such a webhook here: the host names of k3d, minikube, kind and Docker
//! Desktop exist only inside of them.

use std::path::PathBuf;

use kopf_tests::child_process::{ChildProcess, Ending};
use kopf_tests::pki::Authority;
use kopf_tests::{Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::configuration::free_port;

/// A sandbox, and kubeconfigs that make its cluster look like another one.
struct HostDetectionFixture {
    sandbox: Sandbox,
    widgets: Objects,
    folder: TempDir,
}

impl HostDetectionFixture {
    async fn in_sandbox(sandbox: Sandbox) -> Result<Self, TestFailure> {
        Ok(Self {
            widgets: sandbox.define("Widget").await?,
            folder: tempfile::tempdir()?,
            sandbox,
        })
    }

    /// The kubeconfig of an administrator with changes.
    fn kubeconfig(&self, change: impl FnOnce(&mut Value)) -> Result<PathBuf, TestFailure> {
        let plane = self.sandbox.control_plane();
        let original = plane.kubeconfig(self.sandbox.client_user())?;
        let mut config = serde_saphyr::from_str(&std::fs::read_to_string(original)?)?;
        change(&mut config);
        let file = self.folder.path().join("kubeconfig");
        std::fs::write(&file, config.to_string())?;
        Ok(file)
    }

    fn start(&self, kubeconfig: &PathBuf) -> Result<ChildProcess, TestFailure> {
        self.start_with(kubeconfig, &[])
    }

    fn start_with(
        &self,
        kubeconfig: &PathBuf,
        options: &[&str],
    ) -> Result<ChildProcess, TestFailure> {
        let program = env!("CARGO_BIN_EXE_health-operator");
        let operator = self
            .sandbox
            .operator(program, self.sandbox.client_user())?
            .env("KUBECONFIG", kubeconfig)
            .env("HEALTH_GROUP", self.sandbox.group())
            .env("HEALTH_WEBHOOK", "auto")
            .args(["run", "--standalone", "--log-format", "plain"])
            .args(["--webhook-listen", "127.0.0.1"])
            .args(options)
            .args(["--namespace", self.sandbox.namespace()]);
        Ok(operator.start()?)
    }

    /// The host in the URL that an operator gives to the API server.
    async fn webhook_host(&self, kubeconfig: &PathBuf) -> Result<String, TestFailure> {
        let operator = self.start(kubeconfig)?;
        operator
            .wait_for_log("the webhooks are configured in")
            .await?;
        let url = self.url().await?;
        assert_eq!(operator.terminate().await?, Ending::Exit(0));
        let host = url
            .strip_prefix("https://")
            .and_then(|it| it.split(':').next());
        Ok(host.unwrap_or_default().to_owned())
    }

    async fn url(&self) -> Result<String, TestFailure> {
        let kind = "ValidatingWebhookConfiguration";
        let sandbox = &self.sandbox;
        let objects = sandbox
            .objects("admissionregistration.k8s.io/v1", kind)
            .await?;
        let configuration = objects.get(sandbox.group()).await?;
        let url = &configuration.data["webhooks"][0]["clientConfig"]["url"];
        Ok(url.as_str().unwrap_or_default().to_owned())
    }
}

fn rename_context(config: &mut Value, name: &str) {
    config["contexts"][0]["name"] = json!(name);
    config["current-context"] = json!(name);
}

#[tokio::test]
async fn the_webhook_host_is_detected_from_the_kubeconfig_context() -> TestResult {
    let fixture = HostDetectionFixture::in_sandbox(Sandbox::open("contexts").await?).await?;
    for (context, host) in [
        ("k3d-dev", "host.k3d.internal"),
        ("minikube", "host.minikube.internal"),
        ("kind-dev", "host.docker.internal"),
        ("docker-desktop", "host.docker.internal"),
        ("production", "localhost"),
    ] {
        let kubeconfig = fixture.kubeconfig(|config| rename_context(config, context))?;
        assert_eq!(fixture.webhook_host(&kubeconfig).await?, host, "{context}");
    }
    Ok(())
}

#[tokio::test]
async fn a_tunnel_is_used_unless_the_cluster_is_a_known_local_one() -> TestResult {
    let fixture = HostDetectionFixture::in_sandbox(Sandbox::open("tunnelled").await?).await?;
    let program = fixture.folder.path().join("tunnel.sh");
    let script =
        "echo \"started for $1\"; echo \"public: https://tunnel-$1.example\"; exec sleep 600";
    std::fs::write(&program, script)?;
    let command = format!("--webhook-tunnel=sh {} {{port}}", program.display());
    for (context, host) in [
        ("k3d-dev", "https://host.k3d.internal"),
        ("production", "https://tunnel-"),
    ] {
        let kubeconfig = fixture.kubeconfig(|config| rename_context(config, context))?;
        let operator = fixture.start_with(&kubeconfig, &[&command])?;
        operator
            .wait_for_log("the webhooks are configured in")
            .await?;
        let url = fixture.url().await?;
        assert!(url.starts_with(host), "{context}: {url}");
        assert_eq!(operator.terminate().await?, Ending::Exit(0));
    }
    let kubeconfig = fixture.kubeconfig(|_| {})?;
    let refused = fixture.start_with(&kubeconfig, &["--webhook-tunnel=lt --port 80"])?;
    assert_eq!(refused.wait().await?, Ending::Exit(2));
    Ok(())
}

#[tokio::test]
async fn a_local_cluster_reaches_webhooks_on_the_detected_host() -> TestResult {
    let fixture = HostDetectionFixture::in_sandbox(Sandbox::open("here").await?).await?;
    let kubeconfig = fixture.kubeconfig(|_| {})?;
    let operator = fixture.start(&kubeconfig)?;
    let refused = json!({"spec": {"do": "refuse"}});
    eventually("the webhook refuses", async || {
        match fixture.widgets.create("one", refused.clone()).await {
            Err(kube::Error::Api(status)) => (status.code == 403).then_some(()),
            _ => {
                fixture.widgets.delete("one").await.ok();
                None
            }
        }
    })
    .await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn the_webhook_host_is_detected_from_the_api_servers_certificate() -> TestResult {
    let folder = tempfile::tempdir()?;
    // The certificates of these clusters differ in signer and names.
    let clusters = [
        (
            "k3s.test",
            "k3s-server-ca@1700000000",
            "kubernetes",
            "host.k3d.internal",
        ),
        (
            "minikube.test",
            "minikubeCA",
            "kubernetes",
            "host.minikube.internal",
        ),
        (
            "kind.test",
            "kubernetes",
            "kind-control-plane",
            "host.docker.internal",
        ),
        (
            "docker.test",
            "kubernetes",
            "docker-for-desktop",
            "host.docker.internal",
        ),
        ("other.test", "kubernetes", "kubernetes", "localhost"),
    ];
    let (mut flags, mut trusted) = (Vec::new(), Vec::new());
    for (server, signer, name, _) in &clusters {
        let authority = Authority::named(signer)?;
        let pair = authority.server(&["kube-apiserver", server, name])?;
        let file = |kind: &str| folder.path().join(format!("{server}.{kind}"));
        std::fs::write(file("crt"), pair.certificate)?;
        std::fs::write(file("key"), pair.key)?;
        let (chain, key) = (file("crt"), file("key"));
        let pair = format!("{},{}", chain.display(), key.display());
        flags.push(format!("--tls-sni-cert-key={pair}:{server}"));
        trusted.push(authority.certificate().to_owned());
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let plane = PrivateControlPlane::start_with(&flags).await?;
    let sandbox = Sandbox::open_on(plane.handle(), "shown").await?;
    let fixture = HostDetectionFixture::in_sandbox(sandbox).await?;
    for ((server, signer, name, host), authority) in clusters.into_iter().zip(trusted) {
        let kubeconfig = fixture.kubeconfig(|config| {
            let data = k8s_openapi::ByteString(authority.into_bytes());
            let cluster = &mut config["clusters"][0]["cluster"];
            cluster["tls-server-name"] = json!(server);
            cluster["certificate-authority-data"] = json!(data);
        })?;
        let webhook_host = fixture.webhook_host(&kubeconfig).await?;
        assert_eq!(webhook_host, host, "signed by {signer} for {name}");
    }
    Ok(())
}

#[tokio::test]
async fn options_name_the_host_and_the_port_of_webhooks() -> TestResult {
    let fixture = HostDetectionFixture::in_sandbox(Sandbox::open("named-host").await?).await?;
    let kubeconfig = fixture.kubeconfig(|config| rename_context(config, "k3d-dev"))?;
    let port = free_port()?.to_string();
    let options = ["--webhook-host", "here.example", "--webhook-port", &port];
    let operator = fixture.start_with(&kubeconfig, &options)?;
    operator
        .wait_for_log("the webhooks are configured in")
        .await?;
    let url = fixture.url().await?;
    let expected = format!("https://here.example:{port}/validate/");
    assert!(url.starts_with(&expected), "{url}");
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
