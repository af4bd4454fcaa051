//! The cluster that a session uses: one on this machine, or one of the kubeconfig.

use std::path::PathBuf;

use kopf_cluster::NamedCluster;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};

use super::super::cluster;
use super::super::console::Console;
use super::DevArgs;
use super::error::Error;

/// A cluster.
#[derive(Clone, Debug)]
pub(super) struct TargetCluster {
    /// What people call it.
    pub(super) title: String,
    /// The kubeconfig of the operator; that of the user if none is given.
    pub(super) kubeconfig: Option<PathBuf>,
    /// The context in it.
    pub(super) context: Option<String>,
}

/// The cluster that the arguments ask for; one on this machine is started.
pub(super) fn choose(args: &DevArgs, console: &mut Console) -> Result<TargetCluster, Error> {
    if let Some(context) = &args.context {
        return Ok(TargetCluster {
            title: format!("the context `{context}`"),
            kubeconfig: None,
            context: Some(context.clone()),
        });
    }
    let cluster = NamedCluster::of_user(args.cluster.clone());
    let cluster = cluster.map_err(|error| Error::Cluster(error.into()))?;
    cluster::ensure_up(&cluster, console).map_err(|error| Error::Cluster(error.into()))?;
    Ok(TargetCluster {
        title: format!("the cluster `{}`", cluster.name()),
        kubeconfig: Some(cluster.kubeconfig()),
        context: None,
    })
}

impl TargetCluster {
    /// A client for it.
    pub(super) async fn client(&self) -> Result<kube::Client, Error> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let config = match &self.kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path).map_err(access)?;
                Config::from_custom_kubeconfig(read, &options).await
            }
            None => Config::from_kubeconfig(&options).await,
        };
        kube::Client::try_from(config.map_err(access)?).map_err(access)
    }

    /// The kubeconfig for the operator. A context is given to it as a file of its own, because its
    /// command line has no option for one.
    pub(super) fn operator_kubeconfig(
        &self,
        folder: &std::path::Path,
    ) -> Result<Option<PathBuf>, Error> {
        let Some(context) = &self.context else {
            return Ok(self.kubeconfig.clone());
        };
        let mut config = Kubeconfig::read().map_err(access)?;
        if !config.contexts.iter().any(|it| it.name == *context) {
            return Err(Error::NoContext(context.clone()));
        }
        config.current_context = Some(context.clone());
        let path = folder.join("kubeconfig");
        let text = serde_json::to_string(&config).map_err(access)?;
        std::fs::write(&path, text).map_err(access)?;
        Ok(Some(path))
    }
}

fn access(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Access(Box::new(error))
}
