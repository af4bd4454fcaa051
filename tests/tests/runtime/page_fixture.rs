//! Operators with a page, in processes of their own.

use kopf_tests::child_process::{ChildProcess, ChildProcessBuilder};
use kopf_tests::health_client::HttpResponse;
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What an operator logs before the address of its page.
const SERVED: &str = "the page is served at http://";

/// A sandbox with widgets.
pub(crate) struct PageFixture {
    pub(crate) sandbox: Sandbox,
    pub(crate) widgets: Objects,
}

/// An operator with its page.
pub(crate) struct PageOperator {
    pub(crate) process: ChildProcess,
    pub(crate) address: String,
    /// Empty without edits.
    pub(crate) token: String,
}

impl PageFixture {
    pub(crate) async fn open(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        Ok(Self {
            widgets: sandbox.define("Widget").await?,
            sandbox,
        })
    }

    pub(crate) fn prepare(&self) -> Result<ChildProcessBuilder, TestFailure> {
        let account = self.sandbox.administrator("operator");
        let builder = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_page-operator"), &account)?
            .env("PAGE_GROUP", self.sandbox.group())
            .args(["run", "--verbose", "--log-format", "plain"])
            .args(["--namespace", self.sandbox.namespace()]);
        Ok(builder)
    }

    pub(crate) async fn start(&self) -> Result<PageOperator, TestFailure> {
        let builder = self.prepare()?.args(["--page", "http://127.0.0.1:0"]);
        PageOperator::start(builder).await
    }

    pub(crate) async fn create(&self, name: &str, action: &str) -> TestResult {
        let body = json!({"spec": {"do": action, "size": 1}});
        self.widgets.create(name, body).await?;
        Ok(())
    }
}

impl PageOperator {
    pub(crate) async fn start(builder: ChildProcessBuilder) -> Result<Self, TestFailure> {
        let process = builder.start()?;
        let line = process.wait_for_log(SERVED).await?;
        let address = line.rsplit_once("http://").map_or("", |(_, rest)| rest);
        Ok(Self {
            address: address.split('/').next().unwrap_or_default().to_owned(),
            token: address
                .split_once("token=")
                .map_or("", |(_, token)| token)
                .to_owned(),
            process,
        })
    }

    /// Sends a request with these lines after the first one.
    pub(crate) async fn send(
        &self,
        first: &str,
        headers: &[&str],
    ) -> Result<HttpResponse, TestFailure> {
        self.send_with(first, headers, "").await
    }

    /// Sends a request with a body.
    pub(crate) async fn send_with(
        &self,
        first: &str,
        headers: &[&str],
        body: &str,
    ) -> Result<HttpResponse, TestFailure> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let headers: String = headers.iter().map(|it| format!("{it}\r\n")).collect();
        let request = format!("{first} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await?;
        let text = String::from_utf8_lossy(&text);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok(HttpResponse {
            status: status.unwrap_or_default(),
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<HttpResponse, TestFailure> {
        self.send(&format!("GET {path}"), &["Host: localhost"])
            .await
    }

    /// Waits until the JSON at a path satisfies a condition.
    pub(crate) async fn until(
        &self,
        what: &str,
        path: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value, TestFailure> {
        eventually(what, async || {
            let shown = self.get(path).await.ok()?.json();
            condition(&shown).then_some(shown)
        })
        .await
    }

    /// Waits until an object is in this state, and returns its detail.
    pub(crate) async fn until_object(&self, name: &str, state: &str) -> Result<Value, TestFailure> {
        let list = format!("/api/objects?search={name}&state={state}");
        let what = format!("{name} is {state}");
        let found = self.until(&what, &list, |it| it["total"] == 1).await?;
        let uid = found["objects"][0]["uid"].as_str().unwrap_or_default();
        Ok(self.get(&format!("/api/objects/{uid}")).await?.json())
    }
}
