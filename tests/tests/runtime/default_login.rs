//! The login of operators without login handlers: a kubeconfig that changes on disk, its files, its
//! plugins, and no credentials left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kopf_tests::child_process::{ChildProcess, Ending};
use kopf_tests::pki::Authority;
use kopf_tests::service_account::{create_account, delete_account, kubeconfig_of};
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult, try_eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const OPERATOR: &str = env!("CARGO_BIN_EXE_flaky-operator");

const REJECTED: &str = "the API server rejects the credentials of `default_login`";

/// A plugin that prints the token in a file beside it, and notes that it was called.
const PLUGIN: &str = r#"#!/bin/sh
folder=$(dirname "$0")
echo called >> "$folder/calls"
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s" %s}}' \
  "$(cat "$folder/token")" "$(sh "$folder/expiry")"
"#;

/// A kind, and a folder with the kubeconfig of its operator.
struct LoginFixture {
    sandbox: Sandbox,
    objects: Objects,
    folder: tempfile::TempDir,
}

impl LoginFixture {
    async fn new(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        Ok(Self {
            objects: sandbox.define("Widget").await?,
            sandbox,
            folder: tempfile::tempdir()?,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file at once, as the kubelet does.
    fn write(&self, name: &str, text: &str) -> TestResult {
        let new = self.file("new");
        fs::write(&new, text)?;
        fs::rename(new, self.file(name))?;
        Ok(())
    }

    fn write_kubeconfig(&self, user: &Value) -> TestResult {
        self.write("kubeconfig", &kubeconfig_of(&self.sandbox, user)?)
    }

    /// A user that authenticates by the plugin, which reads the file `token`.
    fn plugin(&self, expiry: &str) -> Result<Value, TestFailure> {
        let plugin = self.file("plugin");
        fs::write(&plugin, PLUGIN)?;
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755))?;
        fs::write(self.file("expiry"), expiry)?;
        Ok(json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": plugin,
            "interactiveMode": "Never",
        }}))
    }

    fn plugin_calls(&self) -> usize {
        let calls = fs::read_to_string(self.file("calls"));
        calls.unwrap_or_default().lines().count()
    }

    fn start(&self) -> Result<ChildProcess, TestFailure> {
        let user = self.sandbox.administrator("operator");
        let operator = self.sandbox.operator(OPERATOR, &user)?;
        let started = operator
            .env("KUBECONFIG", self.file("kubeconfig"))
            .env("FLAKY_GROUP", self.sandbox.group())
            .arg("--standalone")
            .arg("--namespace")
            .arg(self.sandbox.namespace())
            .start();
        Ok(started?)
    }

    async fn is_handled(&self, name: &str) -> TestResult {
        self.create(name).await?;
        self.objects
            .wait_until(name, "it is handled", |it| it.data["status"]["quick"] == 1)
            .await?;
        Ok(())
    }

    async fn create(&self, name: &str) -> TestResult {
        let body = json!({"spec": {"size": 1}});
        self.objects.create(name, body).await?;
        Ok(())
    }

    /// Creates objects, which the operator has to write to, until the condition holds.
    async fn create_until(&self, what: &str, holds: impl Fn() -> bool) -> TestResult {
        let mut number = 0;
        try_eventually(what, async || {
            number += 1;
            self.create(&format!("object-{number}")).await?;
            Ok(holds().then_some(()))
        })
        .await
    }

    /// Runs an operator with the token of an account that is deleted; `rotate` makes the next token
    /// available before that.
    async fn continues_after(&self, rotate: impl Fn(&str) -> TestResult) -> TestResult {
        rotate(&create_account(&self.sandbox, "first").await?)?;
        let operator = self.start()?;
        self.is_handled("one").await?;
        rotate(&create_account(&self.sandbox, "second").await?)?;
        delete_account(&self.sandbox, "first").await?;
        self.create_until("the first token is rejected", || {
            operator.log().contains(REJECTED)
        })
        .await?;
        self.is_handled("two").await?;
        assert_eq!(operator.terminate().await?, Ending::Exit(0));
        Ok(())
    }
}

#[tokio::test]
async fn a_kubeconfig_is_read_again_when_its_token_is_rejected() -> TestResult {
    let fixture = LoginFixture::new("rotated-config").await?;
    let rotate = |token: &str| fixture.write_kubeconfig(&json!({"token": token}));
    fixture.continues_after(rotate).await
}

#[tokio::test]
async fn a_token_file_is_read_again_when_its_token_is_rejected() -> TestResult {
    let fixture = LoginFixture::new("rotated-file").await?;
    fixture.write_kubeconfig(&json!({"tokenFile": fixture.file("token")}))?;
    let rotate = |token: &str| fixture.write("token", token);
    fixture.continues_after(rotate).await
}

#[tokio::test]
async fn a_plugin_is_run_again_when_its_token_is_rejected() -> TestResult {
    let fixture = LoginFixture::new("plugin").await?;
    fixture.write_kubeconfig(&fixture.plugin("")?)?;
    let rotate = |token: &str| fixture.write("token", token);
    fixture.continues_after(rotate).await?;
    let calls = fixture.plugin_calls();
    assert!(calls >= 2, "once for each login at least: {calls}");
    Ok(())
}

#[tokio::test]
async fn a_plugin_is_run_again_before_its_token_expires() -> TestResult {
    let fixture = LoginFixture::new("plugin-expiry").await?;
    // The client asks for a new token a minute before the old one expires.
    let soon = r#"date -u -d '+63 seconds' '+, "expirationTimestamp": "%Y-%m-%dT%H:%M:%SZ"'"#;
    fixture.write_kubeconfig(&fixture.plugin(soon)?)?;
    fixture.write("token", &create_account(&fixture.sandbox, "first").await?)?;
    let operator = fixture.start()?;
    fixture.is_handled("one").await?;
    let before = fixture.plugin_calls();
    fixture
        .create_until("the token is renewed", || fixture.plugin_calls() > before)
        .await?;
    fixture.is_handled("two").await?;
    assert!(!operator.log().contains(REJECTED), "{}", operator.log());
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_certificate_that_is_replaced_on_disk_is_used() -> TestResult {
    let fixture = LoginFixture::new("certificate").await?;
    let untrusted = Authority::fresh()?.client("operator", Some("system:masters"))?;
    fixture.write("tls.crt", &untrusted.certificate)?;
    fixture.write("tls.key", &untrusted.key)?;
    let trusted = {
        let user = fixture.sandbox.administrator("operator");
        let kubeconfig = fixture.sandbox.control_plane().kubeconfig(&user)?;
        let config: Value = serde_json::from_slice(&fs::read(kubeconfig)?)?;
        config["users"][0]["user"].clone()
    };
    fixture.write_kubeconfig(&json!({
        "client-certificate": fixture.file("tls.crt"),
        "client-key": fixture.file("tls.key"),
    }))?;
    let operator = fixture.start()?;
    operator.wait_for_log(REJECTED).await?;
    for (file, key) in [
        ("tls.crt", "client-certificate-data"),
        ("tls.key", "client-key-data"),
    ] {
        write_decoded(&fixture.file(file), &trusted[key])?;
    }
    fixture.is_handled("one").await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn the_operator_ends_when_its_kubeconfig_has_no_valid_credentials_any_more() -> TestResult {
    let fixture = LoginFixture::new("revoked").await?;
    let token = create_account(&fixture.sandbox, "first").await?;
    fixture.write_kubeconfig(&json!({"token": token}))?;
    let operator = fixture.start()?;
    fixture.is_handled("one").await?;
    delete_account(&fixture.sandbox, "first").await?;
    fixture
        .create_until("the operator ends", || operator.ending().is_some())
        .await?;
    assert_eq!(operator.ending(), Some(Ending::Exit(5)));
    let reason = format!("there is no access to the cluster: {REJECTED}, and there are no others");
    operator.wait_for_log(&reason).await?;
    let tries = operator.log().matches(REJECTED).count();
    assert!(tries > 3, "the same credentials get several tries: {tries}");
    Ok(())
}

/// Writes the text that a kubeconfig has in base64.
fn write_decoded(file: &Path, value: &Value) -> TestResult {
    let text: k8s_openapi::ByteString = serde_json::from_value(value.clone())?;
    fs::write(file, text.0)?;
    Ok(())
}

/// A proxy that lets clients connect to anything, and reports to where.
async fn start_proxy() -> Result<(u16, mpsc::UnboundedReceiver<String>), TestFailure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = listener.local_addr()?.port();
    let (reporter, reports) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(tunnel(client, reporter.clone()));
        }
    });
    Ok((port, reports))
}

async fn tunnel(client: TcpStream, reporter: mpsc::UnboundedSender<String>) -> TestResult {
    let mut client = BufReader::new(client);
    let mut target = None;
    loop {
        let mut line = String::new();
        client.read_line(&mut line).await?;
        match line.trim_end() {
            "" => break,
            line => target = target.or(line.split(' ').nth(1).map(str::to_owned)),
        }
    }
    let target = target.unwrap_or_default();
    let mut server = TcpStream::connect(&target).await?;
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    // The test may have ended.
    let _ = reporter.send(target);
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_kubeconfig() -> TestResult {
    let fixture = LoginFixture::new("proxied").await?;
    let (port, mut targets) = start_proxy().await?;
    let token = create_account(&fixture.sandbox, "first").await?;
    let text = kubeconfig_of(&fixture.sandbox, &json!({"token": token}))?;
    let mut config: Value = serde_json::from_str(&text)?;
    let cluster = &mut config["clusters"][0]["cluster"];
    let server = cluster["server"].as_str().unwrap_or_default().to_owned();
    cluster["proxy-url"] = json!(format!("http://127.0.0.1:{port}"));
    fixture.write("kubeconfig", &config.to_string())?;
    let operator = fixture.start()?;
    fixture.is_handled("one").await?;
    let target = targets.recv().await.unwrap_or_default();
    assert_eq!(format!("https://{target}"), server);
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
