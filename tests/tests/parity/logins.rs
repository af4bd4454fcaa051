//! A kubeconfig whose token is revoked: the operator reads it again, or ends.

use std::path::Path;

use kopf_tests::child_process::{ChildProcess, Ending};
use kopf_tests::service_account::{create_account, delete_account, kubeconfig_of};
use kopf_tests::{Objects, PythonKopf, Sandbox, TestFailure, TestResult, try_eventually};
use serde_json::json;

use crate::scenario::Implementation;

/// An operator that authenticates by the token of a service account.
struct TokenRun {
    sandbox: Sandbox,
    widgets: Objects,
    operator: ChildProcess,
    folder: tempfile::TempDir,
}

impl TokenRun {
    async fn start(implementation: Implementation) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open("token").await?;
        let widgets = sandbox.define("Widget").await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        write_token(&sandbox, &kubeconfig, "first").await?;
        let user = sandbox.administrator("operator");
        let builder = match implementation {
            Implementation::Kopf => {
                let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/scripts");
                let script = scripts.join("create_with_result.py");
                let kopf = PythonKopf::obtain().await?;
                kopf.operator(&sandbox, &user, &script)?
            }
            Implementation::Ours => sandbox
                .operator(env!("CARGO_BIN_EXE_parity-operator"), &user)?
                .env("SCENARIO", "create_with_result")
                .env("GROUP", sandbox.group())
                .arg("--namespace")
                .arg(sandbox.namespace()),
        };
        let operator = builder.env("KUBECONFIG", &kubeconfig).start()?;
        let run = Self {
            sandbox,
            widgets,
            operator,
            folder,
        };
        run.is_handled("first").await?;
        Ok(run)
    }

    async fn is_handled(&self, name: &str) -> TestResult {
        self.create(name).await?;
        self.widgets
            .wait_until(name, "it is handled", |it| {
                !it.data["status"]["create_map"].is_null()
            })
            .await?;
        Ok(())
    }

    async fn create(&self, name: &str) -> TestResult {
        let body = json!({"spec": {"size": 1}});
        self.widgets.create(name, body).await?;
        Ok(())
    }

    /// Creates objects, to which the operator has to write, until the condition holds.
    async fn create_until(&self, what: &str, holds: impl Fn() -> bool) -> TestResult {
        let mut number = 0;
        try_eventually(what, async || {
            number += 1;
            self.create(&format!("object-{number}")).await?;
            Ok(holds().then_some(()))
        })
        .await
    }
}

async fn write_token(sandbox: &Sandbox, kubeconfig: &Path, account: &str) -> TestResult {
    let token = create_account(sandbox, account).await?;
    let text = kubeconfig_of(sandbox, &json!({"token": token}))?;
    std::fs::write(kubeconfig, text)?;
    Ok(())
}

#[tokio::test]
async fn an_operator_reads_its_kubeconfig_again_when_the_token_is_revoked() -> TestResult {
    for implementation in [Implementation::Kopf, Implementation::Ours] {
        let run = TokenRun::start(implementation).await?;
        let kubeconfig = run.folder.path().join("kubeconfig");
        write_token(&run.sandbox, &kubeconfig, "second").await?;
        delete_account(&run.sandbox, "first").await?;
        let again = match implementation {
            Implementation::Kopf => "Re-authentication has finished.",
            Implementation::Ours => "the API server rejects the credentials of `default_login`",
        };
        run.create_until("the first token is rejected", || {
            run.operator.log().contains(again)
        })
        .await?;
        run.is_handled("second").await?;
        assert_eq!(run.operator.ending(), None, "{implementation:?}");
    }
    Ok(())
}

#[tokio::test]
async fn an_operator_ends_with_an_error_when_its_only_token_is_revoked() -> TestResult {
    for implementation in [Implementation::Kopf, Implementation::Ours] {
        let run = TokenRun::start(implementation).await?;
        delete_account(&run.sandbox, "first").await?;
        run.create_until("the operator ends", || run.operator.ending().is_some())
            .await?;
        let ending = run.operator.ending();
        assert!(
            matches!(ending, Some(Ending::Exit(1..))),
            "{implementation:?}: {ending:?}"
        );
    }
    Ok(())
}
