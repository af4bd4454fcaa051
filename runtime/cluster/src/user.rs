//! Users of a control plane, and kubeconfigs with which clients and child processes act as them.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use k8s_openapi::ByteString;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::json;

use crate::pki;

/// The group with all permissions.
const ADMINISTRATORS: &str = "system:masters";

/// A user of the control plane, under the name that RBAC and the audit log have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    group: Option<String>,
}

/// The reasons why there is no client for a user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The client certificate could not be made.
    #[error("make a client certificate")]
    Certificate(#[from] pki::Error),
    /// A file could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The kubeconfig could not be read.
    #[error("read the kubeconfig {}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The error of kube.
        source: Box<KubeconfigError>,
    },
    /// No client could be made from the kubeconfig.
    #[error("make a client")]
    Client(#[source] Box<kube::Error>),
}

// === impl User ===

impl User {
    /// A user without permissions until a role binding grants some.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            group: None,
        }
    }

    /// A user with all permissions.
    pub fn administrator(name: impl Into<String>) -> Self {
        Self::new(name).in_group(ADMINISTRATORS)
    }

    /// The same user as a member of `group` only.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The user name, as role bindings and the audit log have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Replaces the colons in a service account's name, which separate files in `KUBECONFIG`.
    fn file_name(&self) -> String {
        format!("{}.kubeconfig", self.name.replace(':', "-"))
    }

    /// Writes a kubeconfig with a client certificate of this user.
    pub(crate) fn certified(
        &self,
        authority: &pki::Authority,
        server: &str,
        folder: &Path,
    ) -> Result<PathBuf, Error> {
        let certified = authority.client(&self.name, self.group.as_deref())?;
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

    /// Writes a kubeconfig in which the user of `original` impersonates this one.
    pub(crate) fn impersonated(&self, original: &Path, folder: &Path) -> Result<PathBuf, Error> {
        let mut config = read(original)?;
        for named in &mut config.auth_infos {
            let user = named.auth_info.get_or_insert_default();
            user.impersonate = Some(self.name.clone());
            user.impersonate_groups = self.group.clone().map(|group| vec![group]);
        }
        let file = folder.join(self.file_name());
        write_config(&file, &config)?;
        Ok(file)
    }

    /// Writes a kubeconfig for a server on loopback that does not authenticate its clients.
    pub fn unauthenticated(&self, server: SocketAddr, folder: &Path) -> Result<PathBuf, Error> {
        let file = folder.join(format!("{}.{}.kubeconfig", self.name, server.port()));
        let cluster = json!({"server": format!("http://{server}")});
        write(&file, &kubeconfig(&cluster, &json!({})))?;
        Ok(file)
    }
}

/// Copies a kubeconfig under names that tell it from those of other clusters.
pub(crate) fn copy_renamed(from: &Path, to: &Path, name: &str) -> Result<(), Error> {
    let mut config = read(from)?;
    for named in &mut config.clusters {
        name.clone_into(&mut named.name);
    }
    for named in &mut config.auth_infos {
        name.clone_into(&mut named.name);
    }
    for named in &mut config.contexts {
        name.clone_into(&mut named.name);
        if let Some(context) = &mut named.context {
            name.clone_into(&mut context.cluster);
            context.user = Some(name.to_owned());
        }
    }
    config.current_context = Some(name.to_owned());
    write_config(to, &config)
}

/// A client for a kubeconfig, without retries, so that a test gets every response.
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

fn write_config(path: &Path, config: &Kubeconfig) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(config).map_err(io::Error::other);
    let text = text.map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })?;
    write(path, &text)
}

/// Replaces the file atomically, readable by the current user of the machine only.
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
