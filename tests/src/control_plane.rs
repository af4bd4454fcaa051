//! A control plane as a test sees it: shared by the whole run, or its own to break.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, io};

use crate::assets::{self, Assets, Environment};
use crate::audit::AuditLog;
use crate::failure::Failure;
use crate::guard::protocol::{Access, Request};
use crate::guard::{self, Audience, Component};
use crate::identity::{self, Identity};
use crate::pki::{self, Authority};

mod etcd;
mod lease;

use lease::Lease;

/// A control plane that serves.
#[derive(Debug)]
pub struct ControlPlane {
    origin: Origin,
}

/// A control plane of one test, which may do to it what it likes. It ends with this value.
#[derive(Debug)]
pub struct PrivateControlPlane {
    plane: Arc<ControlPlane>,
}

#[derive(Debug)]
enum Origin {
    Started {
        access: Access,
        lease: Lease,
    },
    Given {
        kubeconfig: PathBuf,
        scratch: PathBuf,
    },
}

/// Why there is no control plane, or why it did not do as told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its binaries are missing.
    #[error(transparent)]
    Assets(#[from] assets::Error),
    /// The program that guards it is not there.
    #[error(transparent)]
    NoGuard(#[from] guard::MissingProgram),
    /// The connection to the guard failed.
    #[error("{0}")]
    Guard(&'static str, #[source] io::Error),
    /// The guard reports a failure.
    #[error("{0}")]
    Refused(String),
    /// The certificate authority could not be read.
    #[error(transparent)]
    Pki(#[from] pki::Error),
    /// No client could be made.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// The shared control plane is a given cluster, which cannot do this.
    #[error("{0}: not possible on the cluster given by {kubeconfig}", kubeconfig = assets::KUBECONFIG_VARIABLE)]
    Given(&'static str),
    /// etcd did not do as told.
    #[error("{0}")]
    Etcd(String),
    /// A thread of the harness died.
    #[error("a thread of the harness died")]
    Thread(#[from] tokio::task::JoinError),
}

// === impl ControlPlane ===

impl ControlPlane {
    /// The control plane that all test binaries of a run share; the first one starts it.
    pub async fn shared() -> Result<Arc<Self>, Error> {
        static SHARED: OnceLock<Result<Arc<ControlPlane>, String>> = OnceLock::new();
        let shared = tokio::task::spawn_blocking(|| {
            SHARED
                .get_or_init(|| {
                    Self::open_shared()
                        .map(Arc::new)
                        .map_err(|error| Failure::describe(&error))
                })
                .clone()
        });
        shared.await?.map_err(Error::Refused)
    }

    fn open_shared() -> Result<Self, Error> {
        let environment = Environment::from_process();
        if let Some(kubeconfig) =
            env::var_os(assets::KUBECONFIG_VARIABLE).filter(|it| !it.is_empty())
        {
            // A shared control plane is never dropped, so a temporary folder would stay for ever;
            // sandboxes remove their own files from this one.
            let scratch = environment.cache.join("run").join("given");
            std::fs::create_dir_all(&scratch)
                .map_err(|source| Error::Guard("create the folder for kubeconfigs", source))?;
            return Ok(Self {
                origin: Origin::Given {
                    kubeconfig: kubeconfig.into(),
                    scratch,
                },
            });
        }
        let assets = obtain(&environment)?;
        let (lease, access) = Lease::join_or_start(&environment, assets)?;
        Ok(Self {
            origin: Origin::Started { access, lease },
        })
    }

    fn open_private(api_server_flags: Vec<String>) -> Result<Self, Error> {
        let assets = obtain(&Environment::from_process())?;
        let options = guard::Options {
            assets,
            audience: Audience::Private,
            api_server_flags,
        };
        let (lease, access) = Lease::start(&options)?;
        Ok(Self {
            origin: Origin::Started { access, lease },
        })
    }

    /// Writes a kubeconfig for this identity, for a client or a child process.
    pub fn kubeconfig(&self, identity: &Identity) -> Result<PathBuf, Error> {
        Ok(match &self.origin {
            Origin::Started { access, .. } => {
                let authority = Authority::open(&access.folder)?;
                identity.certified(&authority, &access.server, &self.scratch())?
            }
            Origin::Given { kubeconfig, .. } => {
                identity.impersonated(kubeconfig, &self.scratch())?
            }
        })
    }

    /// A client of this identity.
    pub async fn client(&self, identity: &Identity) -> Result<kube::Client, Error> {
        Ok(identity::client_from(&self.kubeconfig(identity)?).await?)
    }

    /// Every request that was answered, by whom and how.
    pub fn audit_log(&self) -> Result<AuditLog, Error> {
        match &self.origin {
            Origin::Started { access, .. } => Ok(AuditLog::at(access.folder.join("audit.log"))),
            Origin::Given { .. } => Err(Error::Given("reading the audit log")),
        }
    }

    /// Whether it goes on after the test, so that the test must clean up.
    pub(crate) fn outlives_its_test(&self) -> bool {
        match &self.origin {
            Origin::Started { lease, .. } => !lease.is_private(),
            Origin::Given { .. } => true,
        }
    }

    /// Whether owner references cascade and namespaces go away.
    pub fn has_controller_manager(&self) -> bool {
        match &self.origin {
            Origin::Started { access, .. } => access.has_controller_manager,
            Origin::Given { .. } => true,
        }
    }

    /// The process that guards this control plane, and the folder that goes away with it.
    pub fn footprint(&self) -> Result<(u32, &Path), Error> {
        self.access()
            .map(|access| (access.guard, access.folder.as_path()))
    }

    /// A folder for files of the tests, which goes away with the control plane.
    pub(crate) fn scratch(&self) -> PathBuf {
        match &self.origin {
            Origin::Started { access, .. } => access.folder.join("scratch"),
            Origin::Given { scratch, .. } => scratch.clone(),
        }
    }

    fn access(&self) -> Result<&Access, Error> {
        match &self.origin {
            Origin::Started { access, .. } => Ok(access),
            Origin::Given { .. } => Err(Error::Given("reaching its processes")),
        }
    }
}

// === impl PrivateControlPlane ===

impl PrivateControlPlane {
    /// Starts a control plane that no other test sees.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(&[]).await
    }

    /// The same with additional flags of the API server, such as `--max-requests-inflight=4`.
    pub async fn start_with(api_server_flags: &[&str]) -> Result<Self, Error> {
        let flags = api_server_flags
            .iter()
            .map(|&flag| flag.to_owned())
            .collect();
        let plane =
            tokio::task::spawn_blocking(move || ControlPlane::open_private(flags)).await??;
        Ok(Self {
            plane: Arc::new(plane),
        })
    }

    /// This control plane as a sandbox takes it.
    pub fn handle(&self) -> Arc<ControlPlane> {
        Arc::clone(&self.plane)
    }

    /// Ends a process at once, as a crash does.
    pub async fn kill(&self, component: Component) -> Result<(), Error> {
        self.request(Request::Kill(component)).await
    }

    /// Makes a process silent while its connections stay open.
    pub async fn pause(&self, component: Component) -> Result<(), Error> {
        self.request(Request::Pause(component)).await
    }

    /// Lets a paused process go on.
    pub async fn resume(&self, component: Component) -> Result<(), Error> {
        self.request(Request::Resume(component)).await
    }

    /// Starts a killed process and waits until it serves.
    pub async fn revive(&self, component: Component) -> Result<(), Error> {
        self.request(Request::Start(component)).await
    }

    /// Kills a process and starts it again.
    pub async fn restart(&self, component: Component) -> Result<(), Error> {
        self.kill(component).await?;
        self.revive(component).await
    }

    /// Restarts the API server with these additional flags, such as request limits, instead of the
    /// ones it had.
    pub async fn restart_api_server_with(&self, flags: &[&str]) -> Result<(), Error> {
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        self.request(Request::SetApiServerFlags(flags)).await?;
        self.restart(Component::ApiServer).await
    }

    /// Makes etcd forget every revision but the current one.
    pub async fn compact(&self) -> Result<(), Error> {
        etcd::compact(&self.access()?.etcd)
            .await
            .map_err(Error::Etcd)
    }

    /// Makes every resource version that a client has seen so far too old to watch from: compacts
    /// etcd, and restarts the API server, whose watch cache would still have them.
    pub async fn expire_resource_versions(&self) -> Result<(), Error> {
        self.compact().await?;
        self.restart(Component::ApiServer).await
    }

    async fn request(&self, request: Request) -> Result<(), Error> {
        let plane = Arc::clone(&self.plane);
        tokio::task::spawn_blocking(move || match &plane.origin {
            Origin::Started { lease, .. } => lease.request(&request),
            Origin::Given { .. } => Err(Error::Given("controlling its processes")),
        })
        .await?
    }
}

impl Deref for PrivateControlPlane {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

/// Finds the binaries, and says what a control plane of them lacks.
fn obtain(environment: &Environment) -> Result<Assets, assets::Error> {
    let assets = assets::obtain(environment)?;
    if assets.kube_controller_manager.is_none() {
        assets::say(
            "there is no kube-controller-manager: owner references do not cascade, namespaces do \
             not go away, and tests that need this fail",
        );
    }
    Ok(assets)
}
