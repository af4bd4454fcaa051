//! Who talks to a control plane, and the kubeconfig that lets a client or a child process do so.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::json;

use crate::pki;

/// The group that may do everything.
const ADMINISTRATORS: &str = "system:masters";

/// A user of the control plane, known to audit log and RBAC by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    user: String,
    group: Option<String>,
}

/// Why an identity got no client.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its certificate could not be made.
    #[error("make a client certificate")]
    Certificate(#[from] pki::Error),
    /// Its files could not be written.
    #[error("write {}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its kubeconfig could not be read.
    #[error("read the kubeconfig {}", path.display())]
    Kubeconfig {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Box<KubeconfigError>,
    },
    /// No client could be made from its kubeconfig.
    #[error("make a client")]
    Client(#[source] Box<kube::Error>),
}

// === impl Identity ===

impl Identity {
    /// A user who may do nothing until a role binding says otherwise.
    pub fn user(name: impl Into<String>) -> Self {
        Self {
            user: name.into(),
            group: None,
        }
    }

    /// A user who may do everything.
    pub fn administrator(name: impl Into<String>) -> Self {
        Self::user(name).in_group(ADMINISTRATORS)
    }

    /// The same user as a member of `group` only.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The user name, as role bindings and the audit log have it.
    pub fn name(&self) -> &str {
        &self.user
    }

    /// A service account has colons in its name, which separate files in `KUBECONFIG`.
    fn file_name(&self) -> String {
        format!("{}.kubeconfig", self.user.replace(':', "-"))
    }

    /// Writes a kubeconfig with a client certificate of this user.
    pub(crate) fn certified(
        &self,
        authority: &pki::Authority,
        server: &str,
        folder: &Path,
    ) -> Result<PathBuf, Error> {
        let certified = authority.client(&self.user, self.group.as_deref())?;
        let data = |pem: &str| ByteString(pem.as_bytes().to_vec());
        let cluster = json!({
            "server": server,
            "certificate-authority-data": data(authority.certificate()),
        });
        let user = json!({
            "client-certificate-data": data(&certified.certificate),
            "client-key-data": data(&certified.key),
        });
        let file = folder.join(self.file_name());
        write(&file, &kubeconfig(&cluster, &user))?;
        Ok(file)
    }

    /// Writes a kubeconfig in which the user of `original` acts as this one.
    pub(crate) fn impersonated(&self, original: &Path, folder: &Path) -> Result<PathBuf, Error> {
        let mut config = read(original)?;
        for named in &mut config.auth_infos {
            let user = named.auth_info.get_or_insert_default();
            user.impersonate = Some(self.user.clone());
            user.impersonate_groups = self.group.clone().map(|group| vec![group]);
        }
        let text = serde_json::to_string_pretty(&config).map_err(io::Error::other);
        let file = folder.join(self.file_name());
        let text = text.map_err(|source| Error::Write {
            path: file.clone(),
            source,
        })?;
        write(&file, &text)?;
        Ok(file)
    }

    /// Writes a kubeconfig for a server on loopback that asks nobody who they are.
    pub(crate) fn unauthenticated(
        &self,
        server: SocketAddr,
        folder: &Path,
    ) -> Result<PathBuf, Error> {
        let file = folder.join(format!("{}.{}.kubeconfig", self.user, server.port()));
        let cluster = json!({"server": format!("http://{server}")});
        write(&file, &kubeconfig(&cluster, &json!({})))?;
        Ok(file)
    }
}

/// A client that uses the given kubeconfig and retries nothing, so that a test sees every answer.
pub async fn client_from(kubeconfig: &Path) -> Result<kube::Client, Error> {
    let failed = |source| Error::Kubeconfig {
        path: kubeconfig.to_owned(),
        source: Box::new(source),
    };
    let mut config =
        kube::Config::from_custom_kubeconfig(read(kubeconfig)?, &KubeConfigOptions::default())
            .await
            .map_err(failed)?;
    config.default_retry = false;
    kube::Client::try_from(config).map_err(|source| Error::Client(Box::new(source)))
}

fn read(path: &Path) -> Result<Kubeconfig, Error> {
    Kubeconfig::read_from(path).map_err(|source| Error::Kubeconfig {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// Whoever reads the file meanwhile sees the old text or the new one, and no other user sees either.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |source| Error::Write {
        path: path.to_owned(),
        source,
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.persist(path)
        .map(drop)
        .map_err(|error| failed(error.error))
}

/// JSON is YAML, so this needs no emitter.
fn kubeconfig(cluster: &serde_json::Value, user: &serde_json::Value) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "tests", "user": user}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
        "current-context": "tests",
    })
    .to_string()
}
