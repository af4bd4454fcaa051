//! Own ways to authenticate: several sources, refusals, ends, and no way left.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kopf_runtime::{
    ChangeHandler, Credentials, Error, HandlerError, HookHandler, Hooks, LoginResult, Namespaces,
    On, Operator,
};
use kopf_tests::{TestFailure, TestResult, try_eventually};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::bench::Bench;

/// What login handlers have to offer, one after the other; the last again and again.
#[derive(Default)]
struct Offers {
    main: Mutex<VecDeque<Option<Credentials>>>,
    spare: Mutex<VecDeque<Option<Credentials>>>,
    calls: Mutex<Vec<String>>,
}

impl Offers {
    fn next(&self, name: &str, renewal: bool) -> LoginResult {
        let offers = if name == "main" {
            &self.main
        } else {
            &self.spare
        };
        self.calls.lock().unwrap().push(format!("{name} {renewal}"));
        let mut offers = offers.lock().unwrap();
        Ok(match offers.len() {
            0 => None,
            1 => offers[0].clone(),
            _ => offers.pop_front().flatten(),
        })
    }
}

/// A service account that may do everything.
const ACCOUNT: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: $NAME, namespace: $NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NAME-$NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: $NAME, namespace: $NAMESPACE}]
"#;

struct Cluster<'a> {
    bench: &'a Bench,
    config: kube::Config,
}

impl<'a> Cluster<'a> {
    async fn of(bench: &'a Bench) -> Result<Self, TestFailure> {
        let sandbox = &bench.sandbox;
        let file = sandbox.control_plane().kubeconfig(sandbox.client_user())?;
        let kubeconfig = Kubeconfig::read_from(file)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Self { bench, config })
    }

    /// What the certificate of the sandbox gives access to.
    fn certified(&self) -> Credentials {
        self.config.clone().into()
    }

    /// Somebody with this token, whoever that is.
    fn with_token(&self, token: &str) -> Credentials {
        let mut config = self.config.clone();
        config.auth_info = Default::default();
        Credentials::from(config).token(token)
    }

    /// A new service account.
    async fn account(&self, name: &str) -> Result<Credentials, TestFailure> {
        let namespace = self.bench.sandbox.namespace();
        let yaml = ACCOUNT.replace("$NAMESPACE", namespace);
        self.bench
            .sandbox
            .apply_shared(&yaml.replace("$NAME", name))
            .await?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec::default()),
            ..TokenRequest::default()
        };
        let params = PostParams::default();
        let token = self
            .accounts()
            .create_token_request(name, &params, &request)
            .await?;
        let token = token.status.and_then(|status| status.token);
        Ok(self.with_token(&token.expect("it was granted")))
    }

    fn accounts(&self) -> Api<ServiceAccount> {
        Api::namespaced(self.bench.sandbox.client(), self.bench.sandbox.namespace())
    }
}

fn operator(bench: &Bench, offers: &Arc<Offers>) -> Operator {
    let hooks = Hooks::new(offers)
        .login(HookHandler::new("main"), |offers, cx| {
            Box::pin(async { offers.next("main", cx.is_renewal()) })
        })
        .login(HookHandler::new("spare"), |offers, cx| {
            Box::pin(async { offers.next("spare", cx.is_renewal()) })
        });
    Operator::new("logins")
        .handlers(hooks.build())
        .resource(bench.handlers([ChangeHandler::new("create_fn", On::create())]))
        .namespaces(Namespaces::Only(vec![bench.sandbox.namespace().to_owned()]))
}

fn start(operator: Operator) -> (oneshot::Sender<()>, JoinHandle<Result<(), Error>>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(operator.connect_and_run(async {
        let _ = stopped.await;
    }));
    (stop, running)
}

#[tokio::test]
async fn refused_credentials_make_room_for_others_and_are_not_tried_again() -> TestResult {
    let mut bench = Bench::new("login").await?;
    let offers = Arc::new(Offers::default());
    {
        let cluster = Cluster::of(&bench).await?;
        let wrong = cluster.with_token("wrong").priority(10);
        offers.main.lock().unwrap().push_back(Some(wrong));
        let spare = Some(cluster.certified());
        offers.spare.lock().unwrap().push_back(spare);
    }
    let (stop, running) = start(operator(&bench, &offers));
    bench.create("one", 1).await?;
    assert_eq!(bench.call().await.object, "one");
    bench.handled("one", 1).await?;
    assert_eq!(*offers.calls.lock().unwrap(), ["main false", "spare false"]);
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn an_access_that_is_withdrawn_is_renewed_while_the_operator_runs() -> TestResult {
    let mut bench = Bench::new("relogin").await?;
    let offers = Arc::new(Offers::default());
    let (accounts, first, second) = {
        let cluster = Cluster::of(&bench).await?;
        (
            cluster.accounts(),
            cluster.account("first").await?,
            cluster.account("second").await?,
        )
    };
    let both = [Some(first), Some(second)];
    offers.main.lock().unwrap().extend(both);
    let (stop, running) = start(operator(&bench, &offers));
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    bench.call().await;
    accounts.delete("first", &DeleteParams::default()).await?;
    let mut number = 1;
    try_eventually("the first access does not work any more", async || {
        number += 1;
        let name = format!("object-{number}");
        bench.create(&name, 1).await?;
        bench.handled(&name, 1).await?;
        let calls = offers.calls.lock().unwrap();
        Ok(calls.iter().any(|call| call == "main true").then_some(()))
    })
    .await?;
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn an_access_is_renewed_when_its_time_is_over() -> TestResult {
    let bench = Bench::new("expiry").await?;
    let offers = Arc::new(Offers::default());
    let soon = Timestamp::now() + Duration::from_secs(2);
    {
        let cluster = Cluster::of(&bench).await?;
        let short = cluster.certified().expires(soon);
        let both = [Some(short), Some(cluster.certified())];
        offers.main.lock().unwrap().extend(both);
    }
    let (stop, running) = start(operator(&bench, &offers));
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    let mut number = 0;
    try_eventually("the access has been renewed", async || {
        number += 1;
        let name = format!("object-{number}");
        bench.create(&name, 1).await?;
        bench.handled(&name, 1).await?;
        let calls = offers.calls.lock().unwrap();
        Ok(calls.get(2).map(|call| assert_eq!(call, "main true")))
    })
    .await?;
    assert!(Timestamp::now() >= soon, "not before its time");
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn without_any_access_the_operator_says_so_and_ends() -> TestResult {
    let bench = Bench::new("locked-out").await?;
    let offers = Arc::new(Offers::default());
    let (_stop, running) = start(operator(&bench, &offers));
    let ended = running.await?.expect_err("there are no credentials");
    assert_eq!(
        ended.to_string(),
        "there is no access to the cluster: no login handler has new credentials"
    );
    let wrong = Cluster::of(&bench).await?.with_token("wrong");
    offers.main.lock().unwrap().push_back(Some(wrong));
    let (_stop, running) = start(operator(&bench, &offers));
    let ended = running.await?.expect_err("they are refused");
    assert!(matches!(ended, Error::Login(_)), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_source_that_fails_is_named_in_the_end() -> TestResult {
    let bench = Bench::new("no-source").await?;
    let hooks = Hooks::new(&bench.stage).login(HookHandler::new("keychain"), |_, _| {
        Box::pin(async { Err(HandlerError::permanent("it is locked")) })
    });
    let operator = Operator::new("logins").handlers(hooks.build());
    let ended = operator.connect_and_run(std::future::pending()).await;
    assert_eq!(
        ended.expect_err("no source").to_string(),
        "there is no access to the cluster: `keychain` has failed: it is locked"
    );
    Ok(())
}
