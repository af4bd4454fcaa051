//! The permissions of `19-children-reconcile`: without any one of them something does not work, and
//! the log names it.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kopf_runtime::{OPERATOR_LABEL, OWNER_LABEL};
use kopf_tests::child_process::Ending;
use kopf_tests::permission::grant;
use kopf_tests::{
    ChildProcess, Permission, PrivateControlPlane, Sandbox, TestFailure, TestResult, User,
    eventually, workspace,
};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::generated_rbac::GeneratedManifests;

/// The plugin for which the permission for finalizers is.
const PLUGIN: &str = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement";

const OPERATOR: &str = "websites-operator";

/// The operators that run at once.
const CONCURRENCY: usize = 4;

/// The waits for one line of a log: repeated events come late on a busy machine.
const WAITS: usize = 5;

/// The Websites, of which all but the first are blocked by an object that is not theirs.
const WEBSITES: [&str; 4] = [
    "hello",
    "blocked-configmap",
    "blocked-service",
    "blocked-deployment",
];

/// The example without one of its permissions, in a sandbox of its own.
struct RestrictedExample {
    sandbox: Sandbox,
    account: User,
}

fn example_file(name: &str) -> Result<String, TestFailure> {
    let folder = workspace::root().join("examples/19-children-reconcile");
    Ok(std::fs::read_to_string(folder.join(name))?)
}

/// The permissions of the example, but for peerings, which need not exist, and for definitions, which
/// are read when one is installed after the start.
fn permissions(generated: &GeneratedManifests) -> Vec<Permission> {
    let permissions = generated.permissions().into_iter();
    permissions
        .filter(|it| !it.resource.contains("kopfpeerings"))
        .filter(|it| it.resource != "customresourcedefinitions")
        .collect()
}

// === impl RestrictedExample ===

impl RestrictedExample {
    /// Grants everything but one permission, if any.
    async fn new(
        plane: &PrivateControlPlane,
        generated: &GeneratedManifests,
        missing: Option<&Permission>,
    ) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open_on(plane.handle(), "restricted").await?;
        let account = sandbox.user("operator");
        let rbac = match missing {
            Some(missing) => generated.rbac_without(missing),
            None => generated.rbac.clone(),
        };
        let mut rbac: Vec<Value> = rbac
            .into_iter()
            .filter(|it| it["kind"] == "ClusterRole" || it["kind"] == "ClusterRoleBinding")
            .collect();
        for document in &mut rbac {
            document["metadata"] = json!({"name": sandbox.namespace()});
            if document["kind"] == "ClusterRoleBinding" {
                document["roleRef"]["name"] = sandbox.namespace().into();
                document["subjects"] = json!([{
                    "kind": "User", "name": account.name(), "apiGroup": "rbac.authorization.k8s.io",
                }]);
            }
        }
        let expected = permissions(generated).into_iter().map(|it| {
            let granted = Some(&it) != missing;
            (it, granted)
        });
        let expected: Vec<_> = expected.collect();
        grant(&sandbox, &account, &rbac, &expected).await?;
        Ok(Self { sandbox, account })
    }

    /// Makes a Website, children that an earlier version of the operator applied, and Websites of
    /// which one child each is not its own.
    async fn prepare(&self) -> TestResult {
        let websites = self.sandbox.objects("kopf.dev/v1", "Website").await?;
        let spec = json!({"page": "Hello!", "secretName": "password"});
        let website = websites.create("hello", json!({"spec": spec})).await?;
        let labels = json!({
            OPERATOR_LABEL: OPERATOR, OWNER_LABEL: website.uid().unwrap_or_default(),
        });
        let metadata = json!({"labels": labels});
        let template = json!({
            "metadata": {"labels": {"app": "old"}},
            "spec": {"containers": [{"name": "main", "image": "busybox"}]},
        });
        for (api_version, kind, spec) in [
            ("v1", "ConfigMap", Value::Null),
            ("v1", "Service", json!({"ports": [{"port": 80}]})),
            (
                "apps/v1",
                "Deployment",
                json!({"selector": {"matchLabels": {"app": "old"}}, "template": template}),
            ),
        ] {
            let mut body = json!({"metadata": metadata});
            if !spec.is_null() {
                body["spec"] = spec;
            }
            let objects = self.sandbox.objects(api_version, kind).await?;
            objects.create("old", body.clone()).await?;
            let blocked = format!("blocked-{}", kind.to_lowercase());
            body["metadata"] = json!({});
            objects.create(&blocked, body).await?;
            let spec = json!({"spec": {"page": "Blocked!"}});
            websites.create(&blocked, spec).await?;
        }
        Ok(())
    }

    fn start(&self, program: &std::path::Path) -> Result<ChildProcess, TestFailure> {
        let builder = self.sandbox.operator(program, &self.account)?;
        let namespace = self.sandbox.namespace();
        let arguments = ["run", "--log-format", "plain", "--namespace", namespace];
        Ok(builder.args(arguments).start()?)
    }

    /// Edits the Websites until something holds: other clients are in the way of the operator, which
    /// reads again then, and repeats its events.
    async fn edit_until(&self, what: &str, holds: impl Fn() -> bool) -> TestResult {
        let websites = self.sandbox.objects("kopf.dev/v1", "Website").await?;
        let (websites, edits) = (&websites, std::cell::Cell::new(0));
        eventually(what, async || {
            for name in WEBSITES {
                edits.set(edits.get() + 1);
                let patch = json!({"spec": {"page": format!("page {}", edits.get())}});
                websites.merge(name, patch).await.ok()?;
            }
            holds().then_some(())
        })
        .await
    }
}

/// Checks that the log of an operator without a permission names it.
async fn is_named(
    plane: &PrivateControlPlane,
    generated: &GeneratedManifests,
    program: &std::path::Path,
    missing: &Permission,
) -> TestResult {
    let example = RestrictedExample::new(plane, generated, Some(missing)).await?;
    example.prepare().await?;
    let operator = example.start(program)?;
    let Permission { resource, verb, .. } = missing;
    let named = format!(r#"cannot {verb} resource "{resource}""#);
    let what = format!("the log says: {named}");
    let mut waited = Ok(());
    for _ in 0..WAITS {
        let is_logged = || operator.log().contains(&named);
        waited = example.edit_until(&what, is_logged).await;
        if waited.is_ok() {
            operator.kill().await?;
            return Ok(());
        }
    }
    let log = operator.log();
    waited.map_err(|failure| std::io::Error::other(format!("{failure:?}\n{log}")).into())
}

#[tokio::test]
async fn each_permission_of_the_example_is_needed_and_named_when_it_is_missing() -> TestResult {
    let generated = GeneratedManifests {
        rbac: serde_saphyr::from_multiple(&example_file("deploy/base/rbac.yaml")?)?,
        webhooks: Vec::new(),
    };
    let plane = PrivateControlPlane::start_with(&[PLUGIN]).await?;
    let program = workspace::build_program(OPERATOR)?;

    // With all of them, no request is refused.
    let example = RestrictedExample::new(&plane, &generated, None).await?;
    let definition = example_file("crds/websites.yaml")?;
    example.sandbox.apply_shared(&definition).await?;
    example.prepare().await?;
    let operator = example.start(&program)?;
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Service"),
        ("apps/v1", "Deployment"),
    ] {
        let children = example.sandbox.objects(api_version, kind).await?;
        children
            .wait_until("hello", "it is applied", |_| true)
            .await?;
        children.wait_gone("old").await?;
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    let requests = example.sandbox.requests_of(&example.account).await?;
    let peering = |resource: &Option<String>| {
        let resource = resource.as_deref().unwrap_or_default();
        resource.contains("kopfpeerings")
    };
    let refused: Vec<_> = requests
        .iter()
        .filter(|it| it.code == 403 && !peering(&it.resource))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");

    let permissions = permissions(&generated);
    stream::iter(&permissions)
        .map(|missing| is_named(&plane, &generated, &program, missing))
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}
