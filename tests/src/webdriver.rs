//! A headless browser, driven over WebDriver.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::child_process::ChildProcess;
use crate::health_client::HealthClient;
use crate::sandbox::eventually;
use crate::test_failure::{TestFailure, TestResult};

/// The key under which WebDriver names elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window, and the process of its driver.
#[derive(Debug)]
pub struct Browser {
    driver: ChildProcess,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts a browser with a profile of its own; Debian's packages `chromium` and
    /// `chromium-driver` must be installed.
    pub async fn start() -> Result<Self, TestFailure> {
        let port = HealthClient::on_free_port().await?.address().port();
        let driver = ChildProcess::command("/usr/bin/chromedriver")
            .arg(format!("--port={port}"))
            .start()?;
        driver.wait_for_log("started successfully").await?;
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
        };
        // Tests run as root and without a display.
        let flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let begun = browser.send("POST", "/session", &capabilities).await?;
        let id = begun["sessionId"].as_str().unwrap_or_default();
        browser.session = format!("/session/{id}");
        Ok(browser)
    }

    /// Opens an address, and waits until its document is loaded.
    pub async fn open(&self, url: &str) -> TestResult {
        self.command("url", &json!({"url": url})).await?;
        Ok(())
    }

    /// The visible text of an element.
    pub async fn text(&self, selector: &str) -> Result<String, TestFailure> {
        let element = self.find(selector).await?;
        let path = format!("{}/element/{element}/text", self.session);
        let text = self.send("GET", &path, &Value::Null).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the text of an element contains another one.
    pub async fn until_text(&self, selector: &str, has: &str) -> Result<String, TestFailure> {
        eventually(&format!("{selector} has {has}"), async || {
            let text = self.text(selector).await.ok()?;
            text.contains(has).then_some(text)
        })
        .await
    }

    /// Types into an element, which the page may just have replaced.
    pub async fn press(&self, selector: &str, keys: &str) -> TestResult {
        eventually(&format!("{selector} takes keys"), async || {
            self.try_press(selector, keys).await.ok()
        })
        .await
    }

    async fn try_press(&self, selector: &str, keys: &str) -> TestResult {
        let element = self.find(selector).await?;
        let path = format!("element/{element}/value");
        self.command(&path, &json!({"text": keys})).await?;
        Ok(())
    }

    /// Runs a script in the page, and returns its result.
    pub async fn run(&self, script: &str) -> Result<Value, TestFailure> {
        let body = json!({"script": script, "args": []});
        self.command("execute/sync", &body).await
    }

    /// Runs a script in each document that is opened from now on, before the document's own ones.
    pub async fn run_first(&self, script: &str) -> TestResult {
        let method = "Page.addScriptToEvaluateOnNewDocument";
        self.devtools(method, &json!({"source": script})).await
    }

    /// The errors in the browser's console.
    pub async fn severe_log_lines(&self) -> Result<Vec<String>, TestFailure> {
        let lines = self.command("se/log", &json!({"type": "browser"})).await?;
        let lines = lines.as_array().cloned().unwrap_or_default().into_iter();
        let severe = lines.filter(|it| it["level"] == "SEVERE");
        Ok(severe.map(|it| it["message"].to_string()).collect())
    }

    /// Chooses between `light` and `dark`.
    pub async fn set_colour_scheme(&self, scheme: &str) -> TestResult {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let parameters = json!({"features": features});
        self.devtools("Emulation.setEmulatedMedia", &parameters)
            .await
    }

    /// Ends the browser and its driver.
    pub async fn close(self) -> TestResult {
        self.send("DELETE", &self.session, &Value::Null).await?;
        self.driver.terminate().await?;
        Ok(())
    }

    async fn find(&self, selector: &str) -> Result<String, TestFailure> {
        let body = json!({"using": "css selector", "value": selector});
        let found = self.command("element", &body).await?;
        Ok(found[ELEMENT].as_str().unwrap_or_default().to_owned())
    }

    /// Sends a command of the DevTools protocol.
    async fn devtools(&self, method: &str, parameters: &Value) -> TestResult {
        let body = json!({"cmd": method, "params": parameters});
        self.command("goog/cdp/execute", &body).await?;
        Ok(())
    }

    async fn command(&self, path: &str, body: &Value) -> Result<Value, TestFailure> {
        let path = format!("{}/{path}", self.session);
        self.send("POST", &path, body).await
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, TestFailure> {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let answer = read_answer(&mut BufReader::new(stream)).await?;
        match answer["value"].get("error") {
            Some(error) => Err(TestFailure::new(format!(
                "{path}: {error}: {}",
                answer["value"]["message"]
            ))),
            None => Ok(answer["value"].clone()),
        }
    }
}

/// Reads a response; the driver does not close the connection after it.
async fn read_answer(stream: &mut BufReader<TcpStream>) -> Result<Value, TestFailure> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(given) = line.strip_prefix("content-length:") {
            length = given.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}
