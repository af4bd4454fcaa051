//! Errors of kubeconfigs and credential plugins, without what they quote: that may be a secret.

use std::error::Error as StdError;
use std::process::Output;

use kube::client::AuthError;
use kube::config::KubeconfigError;

/// The longest output of a plugin that is shown.
const LONGEST_OUTPUT: usize = 300;

/// A kubeconfig or a credential plugin gives no credentials.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct LoginError(String);

// === impl LoginError ===

impl LoginError {
    /// What an error says of a kubeconfig or a plugin; none if it is about neither.
    pub(crate) fn find(error: &(dyn StdError + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            let plugin = error.downcast_ref::<AuthError>().and_then(of_plugin);
            let text = plugin.or_else(|| error.downcast_ref().and_then(of_kubeconfig));
            if let Some(text) = text {
                return Some(Self(text));
            }
            cause = error.source();
        }
        None
    }

    /// The text of an error.
    pub(crate) fn describe(error: &(dyn StdError + 'static)) -> String {
        Self::find(error).map_or_else(|| error.to_string(), |found| found.0)
    }
}

fn of_plugin(error: &AuthError) -> Option<String> {
    match error {
        AuthError::AuthExecParse(_) => {
            Some("the credential plugin of the kubeconfig printed no ExecCredential".to_owned())
        }
        // Its standard output may be a token, and its environment a password.
        AuthError::AuthExecRun { out, .. } => Some(format!(
            "the credential plugin of the kubeconfig failed: {}{}",
            out.status,
            complaint(out)
        )),
        _ => None,
    }
}

fn of_kubeconfig(error: &KubeconfigError) -> Option<String> {
    match error {
        KubeconfigError::Parse(error) => {
            let place = error.location().map_or_else(String::new, |place| {
                format!(", line {}, column {}", place.line(), place.column())
            });
            Some(format!("the kubeconfig cannot be read{place}"))
        }
        _ => None,
    }
}

/// What a plugin says to people.
fn complaint(out: &Output) -> String {
    let text = String::from_utf8_lossy(&out.stderr);
    let text = text.trim();
    match text.char_indices().nth(LONGEST_OUTPUT) {
        _ if text.is_empty() => String::new(),
        Some((end, _)) => format!(": {}\u{2026}", &text[..end]),
        None => format!(": {text}"),
    }
}

#[cfg(test)]
mod tests {
    use kube::config::{KubeConfigOptions, Kubeconfig};
    use kube::{Client, Config};
    use serde_json::json;

    use super::*;

    /// What a failing plugin with this script leads to.
    async fn message(script: &str) -> String {
        let user = json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": "sh", "args": ["-c", script],
            "env": [{"name": "PASSWORD", "value": "xyzzy"}],
        }});
        let kubeconfig = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "u", "user": user}],
        });
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = Client::try_from(config.expect("a configuration"));
        LoginError::describe(&client.err().expect("the plugin fails"))
    }

    #[tokio::test]
    async fn a_plugin_is_not_quoted_except_for_what_it_says_to_people() {
        assert_eq!(
            message("echo $PASSWORD").await,
            "the credential plugin of the kubeconfig printed no ExecCredential"
        );
        assert_eq!(
            message("echo $PASSWORD; echo the session has expired >&2; exit 3").await,
            "the credential plugin of the kubeconfig failed: exit status: 3: the session has expired"
        );
        let long = message("yes no | head -c 5000 >&2; exit 1").await;
        assert!(long.chars().count() < 400, "{long}");
    }

    #[test]
    fn a_kubeconfig_is_not_quoted() {
        for text in ["users: [{name: u, user: {token: xyzzy", "users: xyzzy"] {
            let error = Kubeconfig::from_yaml(text).expect_err("it cannot be read");
            let message = LoginError::describe(&error);
            assert!(
                message.starts_with("the kubeconfig cannot be read, line 1"),
                "{message}"
            );
            assert!(!message.contains("xyzzy"), "{message}");
        }
    }
}
