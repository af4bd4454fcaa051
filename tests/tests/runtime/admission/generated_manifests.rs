//! Operators with exactly the webhook configuration and permissions that the generator makes.

use std::time::Duration;

use k8s_openapi::ByteString;
use kopf_runtime::admission::{Certificates, Server, Webhooks};
use kopf_runtime::{Resource, WebhookHandler};
use kopf_tests::permission::grant;
use kopf_tests::{Permission, Sandbox, TestFailure, TestResult, User, eventually, pki};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use super::configuration::{behind_service, free_port};
use super::fixture::{DEFINITION, ReviewRecorder, RunningWebhookOperator, WebhookFixture};
use crate::generated_rbac::GeneratedManifests;

/// An operator in a namespace of its own, and objects for it in another one.
struct GeneratedDeployment {
    fixture: WebhookFixture,
    operator_sandbox: Sandbox,
    port: u16,
    generated: GeneratedManifests,
}

/// The fields of cert-manager's definitions that the generated manifests use.
const CERT_MANAGER: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: issuers.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Issuer, plural: issuers, singular: issuer}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          properties:
            spec:
              type: object
              properties:
                selfSigned:
                  type: object
                  properties:
                    crlDistributionPoints: {type: array, items: {type: string}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {kind: Certificate, plural: certificates, singular: certificate}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [issuerRef, secretName]
              properties:
                secretName: {type: string}
                dnsNames: {type: array, items: {type: string}}
                issuerRef:
                  type: object
                  required: [name]
                  properties:
                    group: {type: string}
                    kind: {type: string}
                    name: {type: string}
"#;

const KINDS: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// The manifests of an operator with a validating and a mutating webhook.
fn generated(
    fixture: &WebhookFixture,
    operator: &str,
    configuration: &str,
) -> Result<GeneratedManifests, TestFailure> {
    let manifest = format!(
        "
apiVersion: kopf-gen.dev/v1
operator:
  name: {operator}
  admission: {{name: {}, configuration: {configuration}}}
resources:
  - crd: widgets.yaml
    admission: [{{validate: check}}, {{mutate: complete}}]
",
        fixture.configuration_name()
    );
    let definition = DEFINITION.replace("$GROUP", fixture.sandbox.group());
    GeneratedManifests::new(manifest, &definition)
}

// === impl GeneratedDeployment ===

impl GeneratedDeployment {
    async fn new(name: &str, configuration: &str) -> Result<Self, TestFailure> {
        let fixture = WebhookFixture::new(name).await?;
        let operator_sandbox = Sandbox::open(name).await?;
        let generated = generated(&fixture, operator_sandbox.namespace(), configuration)?;
        let deployment = Self {
            fixture,
            operator_sandbox,
            port: free_port()?,
            generated,
        };
        for document in &deployment.generated.webhooks {
            deployment.apply(document).await?;
        }
        // There are no nodes: the Service leads to this machine.
        let services = deployment.operator_sandbox.objects("v1", "Service").await?;
        let elsewhere = json!({"spec": {
            "type": "ExternalName", "externalName": "localhost", "selector": null,
        }});
        services.merge(&deployment.service(), elsewhere).await?;
        Ok(deployment)
    }

    async fn apply(&self, document: &Value) -> TestResult {
        // A client certificate of its name stands in for the service account.
        if document["kind"] != "ServiceAccount" {
            self.operator_sandbox.apply(&document.to_string()).await?;
        }
        Ok(())
    }

    /// The permissions for everything but peerings.
    fn permissions(&self) -> Vec<Permission> {
        let permissions = self.generated.permissions().into_iter();
        let peerings = ["kopf.dev", "zalando.org"];
        permissions
            .filter(|it| !peerings.contains(&&*it.group))
            .collect()
    }

    async fn grant_everything(&self) -> TestResult {
        let all = self.permissions().into_iter();
        let all: Vec<_> = all.map(|permission| (permission, true)).collect();
        grant(
            &self.operator_sandbox,
            &self.account(),
            &self.generated.rbac,
            &all,
        )
        .await
    }

    fn service(&self) -> String {
        format!("{}-webhook", self.operator_sandbox.namespace())
    }

    fn account(&self) -> User {
        GeneratedManifests::account(self.operator_sandbox.namespace())
    }

    fn resource(&self) -> Resource<Value, ReviewRecorder> {
        let checked = self.fixture.with_check(WebhookHandler::new("check"));
        checked.mutate(WebhookHandler::new("complete"), |recorder, cx| {
            Box::pin(recorder.complete(cx))
        })
    }

    /// The server of a pod, but on loopback, and on the port of the Service.
    fn server(&self) -> Server {
        behind_service(
            &self.operator_sandbox,
            &self.service(),
            self.port,
            self.port,
        )
    }

    async fn start(&self, webhooks: Webhooks) -> Result<RunningWebhookOperator, TestFailure> {
        let plane = self.operator_sandbox.control_plane();
        let client = plane.client(&self.account()).await?;
        Ok(self.fixture.start_as(self.resource(), webhooks, client))
    }

    /// Empties the Secret, if there is one, so that it has to be filled again.
    async fn clear_certificates(&self) -> TestResult {
        let secrets = self.operator_sandbox.objects("v1", "Secret").await?;
        let nothing = json!({"data": null, "metadata": {"annotations": null}});
        match secrets.merge(&self.service(), nothing).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            emptied => Ok(emptied.map(drop)?),
        }
    }

    /// Starts the operator, and returns the error with which it ends, with its causes.
    async fn error_of(&self, webhooks: Webhooks) -> Result<String, TestFailure> {
        let error = self.start(webhooks).await?.error().await;
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Ok(text)
    }

    /// Checks that an operator without any one of its permissions fails, and names it.
    async fn fails_without_each_permission(&self, webhooks: impl Fn() -> Webhooks) -> TestResult {
        let (permissions, account) = (self.permissions(), self.account());
        for missing in &permissions {
            let expected = permissions.iter().cloned();
            let expected: Vec<_> = expected.map(|it| (it.clone(), it != *missing)).collect();
            let rbac = self.generated.rbac_without(missing);
            grant(&self.operator_sandbox, &account, &rbac, &expected).await?;
            self.clear_certificates().await?;
            let error = self.error_of(webhooks()).await?;
            let Permission {
                resource,
                name,
                verb,
                ..
            } = missing;
            let (name, user) = (name.as_deref().unwrap_or_default(), account.name());
            let reason = format!(
                r#""{name}" is forbidden: User "{user}" cannot {verb} resource "{resource}""#
            );
            assert!(error.contains(&reason), "{missing:?}: {error}");
        }
        self.grant_everything().await
    }

    /// Waits until the API server mutates and denies objects as the webhooks decide.
    async fn webhooks_are_called(&self) -> TestResult {
        eventually("an object is denied", async || {
            let denied = json!({"spec": {"deny": "too small"}});
            match self.fixture.dry_run("two", denied).await {
                Err(kube::Error::Api(status)) => {
                    let message = "denied the request: too small";
                    status.message.ends_with(message).then_some(())
                }
                _ => None,
            }
        })
        .await?;
        eventually("an object is completed", async || {
            let made = self
                .fixture
                .dry_run("one", json!({"spec": {}}))
                .await
                .ok()?;
            (made.data["spec"]["size"] == 3).then_some(())
        })
        .await
    }
}

#[tokio::test]
async fn the_generated_permissions_for_managed_webhooks_are_sufficient_and_necessary() -> TestResult
{
    let deployment = GeneratedDeployment::new("managed", "managed").await?;
    let secret = deployment.service();
    let webhooks = || {
        Webhooks::default()
            .managed(deployment.fixture.configuration_name())
            .server(deployment.server())
            .resync(Duration::from_millis(300))
    };
    let permissions = deployment.permissions();
    assert_eq!(permissions.len(), 6, "{permissions:?}");
    deployment.fails_without_each_permission(webhooks).await?;
    for kind in KINDS {
        let configuration = deployment.fixture.configuration(kind).await?;
        let configuration = configuration.expect("it is a part of the deployment");
        let replicas = configuration.annotations().keys();
        let replicas: Vec<_> = replicas.filter(|it| it.starts_with("replicas.")).collect();
        assert!(
            replicas.is_empty(),
            "an operator that failed serves nothing"
        );
    }

    let operator = deployment.start(webhooks()).await?;
    deployment.webhooks_are_called().await?;
    let secrets = deployment.operator_sandbox.objects("v1", "Secret").await?;
    let kept = secrets.get(&secret).await?;
    assert!(kept.data["data"]["tls.key"].is_string(), "it was filled");
    operator.stop().await?;
    for kind in KINDS {
        let left = deployment.fixture.configuration(kind).await?;
        let left = left.expect("the operator may not delete it");
        assert_eq!(left.data["webhooks"].as_array().map_or(0, Vec::len), 0);
    }
    deployment.fixture.wait_until_not_called().await
}

/// Does the work of cert-manager: makes a certificate, and writes it into Secret and configurations.
async fn act_as_cert_manager(deployment: &GeneratedDeployment) -> TestResult {
    let operator_sandbox = &deployment.operator_sandbox;
    let certificates = operator_sandbox
        .objects("cert-manager.io/v1", "Certificate")
        .await?;
    let issuers = operator_sandbox
        .objects("cert-manager.io/v1", "Issuer")
        .await?;
    let certificate = certificates.get(&deployment.service()).await?;
    let spec = &certificate.data["spec"];
    let issuer = spec["issuerRef"]["name"].as_str().unwrap_or_default();
    let issuer = issuers.get(issuer).await?;
    assert_eq!(issuer.data["spec"], json!({"selfSigned": {}}));
    let names = spec["dnsNames"].as_array().into_iter().flatten();
    let names: Vec<&str> = names.filter_map(Value::as_str).collect();
    let made = pki::self_signed_server(&names)?;
    let data = |pem: &str| ByteString(pem.as_bytes().to_vec());
    let secret = json!({"type": "kubernetes.io/tls", "data": {
        "tls.crt": data(&made.certificate),
        "tls.key": data(&made.key),
        "ca.crt": data(&made.certificate),
    }});
    let name = spec["secretName"].as_str().unwrap_or_default();
    operator_sandbox
        .objects("v1", "Secret")
        .await?
        .create(name, secret)
        .await?;

    for kind in KINDS {
        let configuration = deployment.fixture.configuration(kind).await?;
        let mut configuration = configuration.expect("it was emitted");
        let annotations = configuration.metadata.annotations.clone();
        let inject_from = annotations.unwrap_or_default()["cert-manager.io/inject-ca-from"].clone();
        assert_eq!(
            inject_from,
            format!("{}/{}", operator_sandbox.namespace(), deployment.service())
        );
        for webhook in configuration.data["webhooks"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let client = &mut webhook["clientConfig"];
            client["caBundle"] = json!(data(&made.certificate));
            // A Service of another type would lead from this port to that of the pod.
            assert_eq!(client["service"]["port"], 443);
            client["service"]["port"] = json!(deployment.port);
        }
        replace(deployment, kind, &configuration).await?;
    }
    Ok(())
}

async fn replace(
    deployment: &GeneratedDeployment,
    kind: &str,
    object: &DynamicObject,
) -> TestResult {
    let operator_sandbox = &deployment.operator_sandbox;
    let objects = operator_sandbox
        .objects("admissionregistration.k8s.io/v1", kind)
        .await?;
    let params = PostParams::default();
    objects
        .api()
        .replace(&deployment.fixture.configuration_name(), &params, object)
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_generated_configuration_works_with_certificates_of_cert_manager() -> TestResult {
    Sandbox::open("definitions")
        .await?
        .apply_shared(CERT_MANAGER)
        .await?;
    let deployment = GeneratedDeployment::new("cert-manager", "cert-manager").await?;
    let webhooks = || {
        let certificates = Certificates::Secret {
            name: deployment.service(),
        };
        let server = deployment.server().certificates(certificates);
        Webhooks::default().unmanaged().server(server)
    };
    let permissions = deployment.permissions();
    assert_eq!(permissions.len(), 1, "{permissions:?}");
    deployment.fails_without_each_permission(webhooks).await?;

    // Without a certificate the webhook does not answer, and the API server rejects all objects.
    let operator = deployment.start(webhooks()).await?;
    eventually(
        "the API server rejects objects without the webhook",
        async || match deployment
            .fixture
            .dry_run("none", json!({"spec": {}}))
            .await
        {
            Err(kube::Error::Api(status)) => {
                let message = "failed calling webhook";
                status.message.contains(message).then_some(())
            }
            _ => None,
        },
    )
    .await?;
    act_as_cert_manager(&deployment).await?;
    deployment.webhooks_are_called().await?;
    operator.stop().await?;
    for kind in KINDS {
        let left = deployment.fixture.configuration(kind).await?;
        assert!(left.is_some(), "the operator does not manage it");
    }
    Ok(())
}
