//! Certificates of the webhook server: created, rotated, read from files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kopf_runtime::WebhookHandler;
use kopf_runtime::admission::{Certificates, RotationPolicy, Server, Webhooks};
use kopf_tests::TestResult;
use kopf_tests::pki::{Authority, Certified};
use kopf_tests::sandbox::eventually;
use kube::Api;
use serde_json::json;

use super::configuration::{behind, free_port, service};
use super::fixture::WebhookFixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_rotate_under_load_without_a_failed_admission() -> TestResult {
    let fixture = Arc::new(WebhookFixture::new("rotation").await?);
    let port = free_port()?;
    let service_sandbox = service(port).await?;
    let kept = Certificates::KeptSecret {
        name: "hooks".to_owned(),
        policy: RotationPolicy {
            authority_lifetime: Duration::from_secs(30),
            leaf_lifetime: Duration::from_secs(12),
            spread: Duration::from_secs(3),
        },
    };
    // Two replicas share the certificates; either may be the one that replaces them.
    let webhooks = |listen| {
        Webhooks::default()
            .managed(fixture.configuration_name())
            .server(behind(&service_sandbox, listen, port).certificates(kept.clone()))
            .resync(Duration::from_millis(500))
    };
    let resource = || fixture.with_check(WebhookHandler::new("check"));
    let first = fixture.start_and_wait(resource(), webhooks(port)).await?;
    let second = fixture.start(resource(), webhooks(0));

    let (over, sent) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let load: Vec<_> = (0..4)
        .map(|worker| {
            let (fixture, over, sent) =
                (Arc::clone(&fixture), Arc::clone(&over), Arc::clone(&sent));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let number = sent.fetch_add(1, Ordering::Relaxed);
                    let name = format!("load-{worker}-{number}");
                    fixture.dry_run(&name, json!({"spec": {}})).await?;
                }
                Ok::<(), kube::Error>(())
            })
        })
        .collect();

    let secrets: Api<Secret> =
        Api::namespaced(fixture.sandbox.client(), service_sandbox.namespace());
    let authority = async || {
        let secret = secrets.get("hooks").await.ok()?;
        let data = secret.data?;
        Some((data["authority.crt"].0.clone(), data["ca.crt"].0.clone()))
    };
    let (before, _) = authority().await.expect("the Secret was filled");
    eventually(
        "a new authority signs, and the old one is removed",
        async || {
            let (now, bundle) = authority().await?;
            (now != before && now == bundle).then_some(())
        },
    )
    .await?;
    over.store(true, Ordering::Relaxed);
    for worker in load {
        worker.await.expect("no panic")?;
    }
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent > 100, "only {sent} admissions");
    second.stop().await?;
    first.stop().await
}

#[tokio::test]
async fn certificate_files_are_reloaded_when_they_change() -> TestResult {
    let fixture = WebhookFixture::new("files").await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let write = |authority: &Authority| -> TestResult {
        let pair = authority.loopback_server()?;
        std::fs::write(path("ca.crt"), authority.certificate())?;
        std::fs::write(path("tls.crt"), pair.certificate)?;
        std::fs::write(path("tls.key"), pair.key)?;
        Ok(())
    };
    let (old, new) = (Authority::fresh()?, Authority::fresh()?);
    write(&old)?;
    let files = Certificates::Files {
        certificate: path("tls.crt"),
        key: path("tls.key"),
        authority: Some(path("ca.crt").into()),
    };
    let server = Server::local("localhost")
        .certificates(files)
        .write_ca(path("dump.pem"))
        .check_every(Duration::from_millis(100));
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .server(server);
    let operator = fixture
        .start_and_wait(fixture.with_check(WebhookHandler::new("check")), webhooks)
        .await?;
    assert_eq!(
        std::fs::read_to_string(path("dump.pem"))?,
        old.certificate()
    );
    write(&new)?;
    eventually("the new authority is written to the file", async || {
        let dumped = std::fs::read_to_string(path("dump.pem")).ok()?;
        (dumped == new.certificate()).then_some(())
    })
    .await?;
    fixture.wait_until_called().await?;

    // A file that is not complete yet changes nothing.
    std::fs::write(path("tls.key"), "-----BEGIN PRIVATE KEY-----")?;
    fixture.wait_until_called().await?;
    operator.stop().await
}

#[tokio::test]
async fn a_certificate_that_has_expired_is_served_until_its_files_change() -> TestResult {
    let fixture = WebhookFixture::new("expired").await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let authority = Authority::fresh()?;
    let write = |pair: Certified| -> TestResult {
        std::fs::write(path("tls.crt"), pair.certificate)?;
        std::fs::write(path("tls.key"), pair.key)?;
        Ok(())
    };
    std::fs::write(path("ca.crt"), authority.certificate())?;
    write(authority.expired_loopback_server()?)?;
    let files = Certificates::Files {
        certificate: path("tls.crt"),
        key: path("tls.key"),
        authority: Some(path("ca.crt").into()),
    };
    let server = Server::local("localhost")
        .certificates(files)
        .check_every(Duration::from_millis(100));
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .server(server);
    let operator = fixture.start(fixture.with_check(WebhookHandler::new("check")), webhooks);
    eventually("the API server refuses the certificate", async || {
        let error = fixture
            .dry_run("refused", json!({"spec": {}}))
            .await
            .err()?;
        let refused = error.to_string().contains("certificate has expired");
        refused.then_some(())
    })
    .await?;
    write(authority.loopback_server()?)?;
    fixture.wait_until_called().await?;
    operator.stop().await
}

#[tokio::test]
async fn an_encrypted_key_file_is_rejected_with_an_error() -> TestResult {
    let fixture = WebhookFixture::new("encrypted").await?;
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let authority = Authority::fresh()?;
    std::fs::write(path("tls.crt"), authority.loopback_server()?.certificate)?;
    let key = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(path("tls.key"), key)?;
    let files = Certificates::Files {
        certificate: path("tls.crt"),
        key: path("tls.key"),
        authority: None,
    };
    let webhooks = Webhooks::default()
        .managed(fixture.configuration_name())
        .server(Server::local("localhost").certificates(files));
    let error = fixture
        .start(fixture.with_check(WebhookHandler::new("check")), webhooks)
        .error()
        .await;
    assert!(format!("{error:?}").contains("Encrypted"), "{error:?}");
    Ok(())
}
