//! A webhook server behind a tunnel program such as ngrok, which prints its public address.

use std::process::Stdio;

use futures::future::BoxFuture;
use kopf_core::admission::configuration::{Address, ClientConfig};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tracing::{debug, info};

use super::server::{Protocol, Server};
use super::webhook_server::{ServeError, WebhookServer, WebhookSession};

/// A server on loopback behind a program that forwards a public HTTPS address to it.
///
/// Every `{port}` in the arguments becomes the port of the server. The program must print its public
/// address: the first `https://…` in a line counts, and one in a later line replaces it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Tunnel {
    program: String,
    arguments: Vec<String>,
    marker: String,
    server: Box<Server>,
}

impl Tunnel {
    /// A tunnel through this program.
    pub fn new<A: Into<String>>(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            marker: String::new(),
            server: Box::new(Server::local("localhost").protocol(Protocol::Http)),
        }
    }

    /// A tunnel through `ngrok`, which must be installed and logged in.
    pub fn ngrok() -> Self {
        let arguments = [
            "http",
            "{port}",
            "--log",
            "stdout",
            "--log-format",
            "logfmt",
        ];
        Self::new("ngrok", arguments).after("url=")
    }

    /// The address counts only right after this text.
    pub fn after(mut self, marker: impl Into<String>) -> Self {
        self.marker = marker.into();
        self
    }

    /// Forwards to a server with other options; one with plain HTTP, unless the program can trust
    /// its certificates.
    pub fn server(mut self, server: Server) -> Self {
        self.server = Box::new(server);
        self
    }

    /// A tunnel by its command line: `ngrok`, or a program and its arguments with spaces between
    /// them, of which one has `{port}`.
    pub(crate) fn parse(command: &str) -> Result<Self, String> {
        let mut words = command.split_whitespace();
        match words.next() {
            Some("ngrok") if words.clone().next().is_none() => Ok(Self::ngrok()),
            Some(program) if command.contains("{port}") => Ok(Self::new(program, words)),
            _ => {
                Err("write `ngrok`, or a command with `{port}`, such as `lt --port {port}`".into())
            }
        }
    }

    /// The tunnel to a server with other addresses.
    pub(super) fn with_server(mut self, change: impl FnOnce(Server) -> Server) -> Self {
        self.server = Box::new(change(*self.server));
        self
    }

    fn start(&self, local: &Address) -> Result<(Child, ChildStdout), ServeError> {
        let port = match local {
            Address::Url(url) => url
                .rsplit(':')
                .next()
                .and_then(|rest| rest.split('/').next()),
            Address::Service { .. } => None,
        };
        let port =
            port.ok_or_else(|| ServeError::message("a tunnel needs a server on a local port"))?;
        let arguments = self.arguments.iter().map(|it| it.replace("{port}", port));
        let failed = |error| ServeError::new(format!("cannot start `{}`", self.program), error);
        let mut child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let output = child.stdout.take();
        let output = output.ok_or_else(|| {
            ServeError::message("the output of the tunnel program cannot be read")
        })?;
        Ok((child, output))
    }

    /// Reads the output of the program until it ends, which is an error.
    async fn follow(
        &self,
        mut child: Child,
        output: ChildStdout,
        session: &WebhookSession,
    ) -> Result<(), ServeError> {
        let mut lines = BufReader::new(output).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            debug!("{}: {line}", self.program);
            if let Some(url) = public_url(&line, &self.marker) {
                info!("`{}` forwards {url}", self.program);
                session.announce(ClientConfig {
                    address: Address::Url(url.to_owned()),
                    ca_bundle: None,
                });
            }
        }
        let status = child.wait().await;
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(ServeError::message(format!(
            "`{}` has ended ({status}), and the tunnel with it",
            self.program
        )))
    }
}

impl WebhookServer for Tunnel {
    fn serve(&self, session: WebhookSession) -> BoxFuture<'_, Result<(), ServeError>> {
        Box::pin(async move {
            let (inner, mut announced) = session.divert();
            let tunnelling = async {
                let Some(local) = announced.next().await else {
                    return std::future::pending().await;
                };
                let (child, output) = self.start(&local.address)?;
                self.follow(child, output, &session).await
            };
            tokio::select! {
                served = self.server.serve(inner) => served,
                ended = tunnelling => ended,
            }
        })
    }
}

/// The first HTTPS address in a line, right after the marker.
fn public_url<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let start = line.find(&format!("{marker}https://"))? + marker.len();
    let rest = &line[start..];
    let end = rest
        .find(|char: char| char.is_whitespace() || "\"'<>,;".contains(char))
        .unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_names_the_program_and_the_place_of_the_port() {
        let ngrok = Tunnel::parse("ngrok").expect("the default");
        assert_eq!(ngrok.marker, "url=");
        let other = Tunnel::parse("lt --port {port}").expect("a program");
        assert_eq!((other.program.as_str(), other.arguments.len()), ("lt", 2));
        assert!(Tunnel::parse("lt --port 80").is_err());
        assert!(Tunnel::parse("").is_err());
    }

    #[test]
    fn the_public_address_is_found_in_the_output_of_programs() {
        let ngrok = r#"t=2026 lvl=info msg="started tunnel" addr=http://localhost:1 url=https://ab.ngrok.app"#;
        assert_eq!(public_url(ngrok, "url="), Some("https://ab.ngrok.app"));
        assert_eq!(public_url(ngrok, "nothing="), None);
        let other = "your url is: \"https://x.loca.lt/\", have fun";
        assert_eq!(public_url(other, ""), Some("https://x.loca.lt"));
        assert_eq!(public_url("http://plain.example", ""), None);
    }
}
