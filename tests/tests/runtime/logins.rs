//! Login handlers: several sources of credentials, rejections, expiry, and no credentials left.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kopf_runtime::{
    ChangeHandler, Credentials, Error, HandlerError, HookHandler, Hooks, IndexHandler, LoginResult,
    Namespaces, On, Operator, Settings,
};
use kopf_tests::service_account::{create_account, delete_account};
use kopf_tests::{TestFailure, TestResult, try_eventually};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fixture::HandlerFixture;
use crate::indices::{ByWidget, indexed};

/// The credentials that login handlers return, in order; the last one repeatedly.
#[derive(Default)]
struct QueuedCredentials {
    main: Mutex<VecDeque<Option<Credentials>>>,
    spare: Mutex<VecDeque<Option<Credentials>>>,
    calls: Mutex<Vec<String>>,
}

impl QueuedCredentials {
    fn next(&self, name: &str, renewal: bool) -> LoginResult {
        let queued = if name == "main" {
            &self.main
        } else {
            &self.spare
        };
        self.calls.lock().unwrap().push(format!("{name} {renewal}"));
        let mut queued = queued.lock().unwrap();
        Ok(match queued.len() {
            0 => None,
            1 => queued[0].clone(),
            _ => queued.pop_front().flatten(),
        })
    }
}

struct ClusterCredentials<'a> {
    fixture: &'a HandlerFixture,
    config: kube::Config,
}

impl<'a> ClusterCredentials<'a> {
    async fn of(fixture: &'a HandlerFixture) -> Result<Self, TestFailure> {
        let sandbox = &fixture.sandbox;
        let file = sandbox.control_plane().kubeconfig(sandbox.client_user())?;
        let kubeconfig = Kubeconfig::read_from(file)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Self { fixture, config })
    }

    /// The credentials of the sandbox's client certificate.
    fn certified(&self) -> Credentials {
        self.config.clone().into()
    }

    /// Credentials with this token.
    fn with_token(&self, token: &str) -> Credentials {
        let mut config = self.config.clone();
        config.auth_info = Default::default();
        Credentials::from(config).token(token)
    }

    /// The same without the authority of the API server.
    fn without_authority(&self) -> Credentials {
        let mut config = self.config.clone();
        config.root_cert = None;
        config.into()
    }

    /// The credentials of a new service account.
    async fn account(&self, name: &str) -> Result<Credentials, TestFailure> {
        let token = create_account(&self.fixture.sandbox, name).await?;
        Ok(self.with_token(&token))
    }
}

fn operator(fixture: &HandlerFixture, queued: &Arc<QueuedCredentials>) -> Operator {
    let hooks = Hooks::new(queued)
        .login(HookHandler::new("main"), |queued, cx| {
            Box::pin(async { queued.next("main", cx.is_renewal()) })
        })
        .login(HookHandler::new("spare"), |queued, cx| {
            Box::pin(async { queued.next("spare", cx.is_renewal()) })
        });
    Operator::new("logins")
        .handlers(hooks.build())
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .namespaces(Namespaces::Only(vec![
            fixture.sandbox.namespace().to_owned(),
        ]))
}

fn start(operator: Operator) -> (oneshot::Sender<()>, JoinHandle<Result<(), Error>>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(operator.connect_and_run(async {
        let _ = stopped.await;
    }));
    (stop, running)
}

#[tokio::test]
async fn rejected_credentials_are_replaced_and_not_tried_again() -> TestResult {
    let mut fixture = HandlerFixture::new("login").await?;
    let queued = Arc::new(QueuedCredentials::default());
    {
        let credentials = ClusterCredentials::of(&fixture).await?;
        let wrong = credentials.with_token("wrong").priority(10);
        queued.main.lock().unwrap().push_back(Some(wrong));
        let spare = Some(credentials.certified());
        queued.spare.lock().unwrap().push_back(spare);
    }
    let (stop, running) = start(operator(&fixture, &queued));
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.object, "one");
    fixture.wait_until_handled("one", 1).await?;
    assert_eq!(*queued.calls.lock().unwrap(), ["main false", "spare false"]);
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn revoked_credentials_are_renewed_while_the_operator_runs() -> TestResult {
    let mut fixture = HandlerFixture::new("relogin").await?;
    let queued = Arc::new(QueuedCredentials::default());
    let (first, second) = {
        let credentials = ClusterCredentials::of(&fixture).await?;
        (
            credentials.account("first").await?,
            credentials.account("second").await?,
        )
    };
    let both = [Some(first), Some(second)];
    queued.main.lock().unwrap().extend(both);
    let (stop, running) = start(operator(&fixture, &queued));
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    fixture.next_call().await;
    delete_account(&fixture.sandbox, "first").await?;
    let mut number = 1;
    try_eventually("the first credentials are rejected", async || {
        number += 1;
        let name = format!("object-{number}");
        fixture.create(&name, 1).await?;
        fixture.wait_until_handled(&name, 1).await?;
        let calls = queued.calls.lock().unwrap();
        Ok(calls.iter().any(|call| call == "main true").then_some(()))
    })
    .await?;
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn credentials_are_renewed_when_they_expire() -> TestResult {
    let fixture = HandlerFixture::new("expiry").await?;
    let queued = Arc::new(QueuedCredentials::default());
    let soon = Timestamp::now() + Duration::from_secs(2);
    {
        let credentials = ClusterCredentials::of(&fixture).await?;
        let short = credentials.certified().expires(soon);
        let both = [Some(short), Some(credentials.certified())];
        queued.main.lock().unwrap().extend(both);
    }
    let (stop, running) = start(operator(&fixture, &queued));
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let mut number = 0;
    try_eventually("the credentials are renewed", async || {
        number += 1;
        let name = format!("object-{number}");
        fixture.create(&name, 1).await?;
        fixture.wait_until_handled(&name, 1).await?;
        let calls = queued.calls.lock().unwrap();
        Ok(calls.get(2).map(|call| assert_eq!(call, "main true")))
    })
    .await?;
    assert!(Timestamp::now() >= soon, "not before its time");
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn without_valid_credentials_the_operator_ends_with_an_error() -> TestResult {
    let fixture = HandlerFixture::new("locked-out").await?;
    let queued = Arc::new(QueuedCredentials::default());
    let (_stop, running) = start(operator(&fixture, &queued));
    let ended = running.await?.expect_err("there are no credentials");
    assert_eq!(
        ended.to_string(),
        "there is no access to the cluster: no login handler has credentials"
    );
    let wrong = ClusterCredentials::of(&fixture).await?.with_token("wrong");
    queued.main.lock().unwrap().push_back(Some(wrong));
    let (_stop, running) = start(operator(&fixture, &queued));
    let ended = running.await?.expect_err("the API server rejects them");
    assert!(matches!(ended, Error::Login(_)), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_failed_login_handler_is_named_in_the_error() -> TestResult {
    let fixture = HandlerFixture::new("no-source").await?;
    let hooks = Hooks::new(&fixture.scripts).login(HookHandler::new("keychain"), |_, _| {
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

/// A login handler whose first credentials expire soon, and whose later calls are scripted.
struct Relogin {
    config: kube::Config,
    calls: AtomicU32,
    later: fn(u32) -> LaterLogin,
}

enum LaterLogin {
    Succeed(Duration),
    Fail(Duration),
}

impl Relogin {
    async fn log_in(&self) -> LoginResult {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let credentials = Credentials::from(self.config.clone());
        if call == 0 {
            let soon = Timestamp::now() + Duration::from_secs(2);
            return Ok(Some(credentials.expires(soon)));
        }
        match (self.later)(call) {
            LaterLogin::Succeed(after) => {
                tokio::time::sleep(after).await;
                Ok(Some(credentials))
            }
            LaterLogin::Fail(again) => Err(HandlerError::temporary_after(again, "not now")),
        }
    }
}

impl Relogin {
    /// Creates objects until the operator logs in again; returns the name of the last one.
    async fn repeated(&self, fixture: &HandlerFixture) -> Result<String, TestFailure> {
        let mut number = 0;
        try_eventually("the operator logs in again", async || {
            number += 1;
            let name = format!("object-{number}");
            fixture.create(&name, 2).await?;
            Ok((self.calls.load(Ordering::SeqCst) > 1).then_some(name))
        })
        .await
    }
}

/// An operator whose requests wait for two seconds, and whose login handler is called three times.
async fn relogin(
    fixture: &HandlerFixture,
    later: fn(u32) -> LaterLogin,
) -> Result<(Operator, Arc<Relogin>), TestFailure> {
    let relogin = Arc::new(Relogin {
        config: ClusterCredentials::of(fixture).await?.config,
        calls: AtomicU32::new(0),
        later,
    });
    let hooks = Hooks::new(&relogin).login(HookHandler::new("main").retries(3), |relogin, _| {
        Box::pin(relogin.log_in())
    });
    let mut settings = Settings::default();
    settings.networking.request_timeout = Duration::from_secs(2);
    let operator = Operator::new("logins")
        .handlers(hooks.build())
        .settings(settings)
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .namespaces(Namespaces::Only(vec![
            fixture.sandbox.namespace().to_owned(),
        ]));
    Ok((operator, relogin))
}

#[tokio::test]
async fn a_login_may_take_longer_than_the_requests_that_wait_for_it() -> TestResult {
    let fixture = HandlerFixture::new("slow-relogin").await?;
    let slow = |_| LaterLogin::Succeed(Duration::from_secs(5));
    let (operator, relogin) = relogin(&fixture, slow).await?;
    let (stop, running) = start(operator);
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let waiting = relogin.repeated(&fixture).await?;
    fixture.wait_until_handled(&waiting, 2).await?;
    assert_eq!(relogin.calls.load(Ordering::SeqCst), 2);
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn a_login_that_keeps_failing_ends_the_operator_after_its_retries() -> TestResult {
    let fixture = HandlerFixture::new("failed-relogin").await?;
    let failing = |_| LaterLogin::Fail(Duration::from_secs(3));
    let (operator, relogin) = relogin(&fixture, failing).await?;
    let (_stop, running) = start(operator);
    relogin.repeated(&fixture).await?;
    let ended = tokio::time::timeout(Duration::from_secs(60), running).await?;
    let ended = ended?.expect_err("no login succeeds");
    assert!(matches!(ended, Error::Login(_)), "{ended:?}");
    assert!(ended.to_string().contains("not now"), "{ended}");
    assert_eq!(relogin.calls.load(Ordering::SeqCst), 4);
    Ok(())
}

#[tokio::test]
async fn logins_whose_credentials_are_all_rejected_are_made_in_growing_pauses() -> TestResult {
    let fixture = HandlerFixture::new("rejected-logins").await?;
    let tokens = Arc::new((
        ClusterCredentials::of(&fixture).await?.config,
        AtomicU32::new(0),
    ));
    let hooks = Hooks::new(&tokens).login(HookHandler::new("main"), |tokens, _| {
        Box::pin(async {
            let number = tokens.1.fetch_add(1, Ordering::SeqCst);
            let mut config = tokens.0.clone();
            config.auth_info = Default::default();
            Ok(Some(
                Credentials::from(config).token(format!("wrong-{number}")),
            ))
        })
    });
    let operator = Operator::new("logins")
        .handlers(hooks.build())
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]));
    let begun = Instant::now();
    let (stop, running) = start(operator);
    let logins = || tokens.1.load(Ordering::SeqCst);
    try_eventually("a login is repeated", async || {
        Ok((logins() >= 3).then_some(()))
    })
    .await?;
    // Without pauses there would be hundreds.
    assert!(logins() < 6, "{} logins", logins());
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "there are pauses"
    );
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn the_scheme_of_a_token_is_sent_to_the_api_server() -> TestResult {
    let mut fixture = HandlerFixture::new("schemes").await?;
    let queued = Arc::new(QueuedCredentials::default());
    {
        let credentials = ClusterCredentials::of(&fixture).await?;
        // The API server knows one scheme, in any case, and takes others for anonymous requests.
        let account = credentials.account("first").await?.scheme("bEARER");
        queued.main.lock().unwrap().push_back(Some(account));
    }
    let (stop, running) = start(operator(&fixture, &queued));
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.object, "one");
    fixture.wait_until_handled("one", 1).await?;
    assert_eq!(*queued.calls.lock().unwrap(), ["main false", "spare false"]);
    drop(stop);
    running.await??;
    Ok(())
}

/// The header by which an operator with these credentials authenticates. API servers accept no
/// passwords any more, so this is a server that only reads the request.
async fn sent_header(change: fn(Credentials) -> Credentials) -> Result<String, TestFailure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = format!("http://{}", listener.local_addr()?).parse()?;
    let queued = Arc::new(QueuedCredentials::default());
    let credentials = change(Credentials::new(address));
    queued.main.lock().unwrap().push_back(Some(credentials));
    let fixture = HandlerFixture::new("header").await?;
    let (_stop, running) = start(operator(&fixture, &queued));
    let (connection, _) = listener.accept().await?;
    let mut lines = BufReader::new(connection).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((name, value)) = line.split_once(": ")
            && name.eq_ignore_ascii_case("authorization")
        {
            running.abort();
            return Ok(value.to_owned());
        }
    }
    Err(TestFailure::new("the request has no such header"))
}

#[tokio::test]
async fn names_with_passwords_and_schemes_without_tokens_are_sent_as_by_kopf() -> TestResult {
    let basic = sent_header(|it| it.basic("aladdin", "opensesame")).await?;
    assert_eq!(basic, "Basic YWxhZGRpbjpvcGVuc2VzYW1l");
    let token = sent_header(|it| it.token("abc").scheme("Token")).await?;
    assert_eq!(token, "Token abc");
    let scheme = sent_header(|it| it.scheme("Negotiate abc")).await?;
    assert_eq!(scheme, "Negotiate abc");
    Ok(())
}

#[tokio::test]
async fn login_handlers_can_read_the_settings() -> TestResult {
    let fixture = HandlerFixture::new("login-settings").await?;
    let hooks = Hooks::new(&fixture.scripts)
        .startup(HookHandler::new("tune"), |_, cx| {
            Box::pin(async {
                cx.settings().networking.connect_timeout = Duration::from_secs(7);
                Ok(())
            })
        })
        .login(HookHandler::new("read"), |_, cx| {
            Box::pin(async {
                let timeout = cx.settings().networking.connect_timeout;
                Err(HandlerError::permanent(format!("{timeout:?}")))
            })
        });
    let operator = Operator::new("logins").handlers(hooks.build());
    let ended = operator.connect_and_run(std::future::pending()).await;
    assert_eq!(
        ended.expect_err("no credentials").to_string(),
        "there is no access to the cluster: `read` has failed: 7s"
    );
    Ok(())
}

#[tokio::test]
async fn insecure_credentials_accept_any_certificate_of_the_api_server() -> TestResult {
    let mut fixture = HandlerFixture::new("insecure").await?;
    let unknown = ClusterCredentials::of(&fixture).await?.without_authority();
    let insecure = unknown.clone().insecure();
    let queued = Arc::new(QueuedCredentials::default());
    queued.main.lock().unwrap().push_back(Some(unknown));
    let (stop, running) = start(operator(&fixture, &queued));
    fixture.create("one", 1).await?;
    let refused = fixture.objects.wait_until("one", "it is handled", |it| {
        it.metadata.annotations.is_some()
    });
    let refused = tokio::time::timeout(Duration::from_secs(3), refused).await;
    assert!(
        refused.is_err(),
        "the certificate of the server is verified"
    );
    drop(stop);
    running.await??;

    let queued = Arc::new(QueuedCredentials::default());
    queued.main.lock().unwrap().push_back(Some(insecure));
    let (stop, running) = start(operator(&fixture, &queued));
    assert_eq!(fixture.next_call().await.object, "one");
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn login_handlers_read_the_indices_of_the_operator() -> TestResult {
    let fixture = HandlerFixture::new("login-index").await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let body = serde_json::json!({"data": {"widget": "one"}});
    maps.create("map", body).await?;
    let queued = Arc::new(QueuedCredentials::default());
    {
        let credentials = ClusterCredentials::of(&fixture).await?;
        let first = credentials.account("first").await?;
        let both = [Some(first), Some(credentials.certified())];
        queued.main.lock().unwrap().extend(both);
    }
    let hooks = Hooks::new(&queued).login(HookHandler::new("main"), |queued, cx| {
        Box::pin(async {
            let found = cx.index(ByWidget).get("one");
            let call = format!("{found:?} {}", cx.is_renewal());
            queued.calls.lock().unwrap().push(call);
            Ok(queued.main.lock().unwrap().pop_front().flatten())
        })
    });
    let operator = Operator::new("logins")
        .handlers(hooks.build())
        .resource(indexed(IndexHandler::new(), Duration::ZERO))
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .namespaces(Namespaces::Only(vec![
            fixture.sandbox.namespace().to_owned(),
        ]));
    let (stop, running) = start(operator);
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    delete_account(&fixture.sandbox, "first").await?;
    let mut number = 1;
    try_eventually("the first credentials are rejected", async || {
        number += 1;
        let name = format!("object-{number}");
        fixture.create(&name, 1).await?;
        fixture.wait_until_handled(&name, 1).await?;
        Ok((queued.calls.lock().unwrap().len() > 1).then_some(()))
    })
    .await?;
    let calls = queued.calls.lock().unwrap().clone();
    assert_eq!(calls, ["[] false", "[\"map\"] true"]);
    drop(stop);
    running.await??;
    Ok(())
}
