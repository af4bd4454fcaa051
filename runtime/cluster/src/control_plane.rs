//! A running control plane: one that the whole test run shares, or a private one of a test.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{env, io};

use crate::audit::AuditLog;
use crate::binaries::{self, Environment, FoundBinaries, WITHOUT_CONTROLLER_MANAGER};
use crate::component::Component;
use crate::pki::{self, Authority};
use crate::processes;
use crate::program::{MissingProgram, Program};
use crate::supervisor::protocol::{ControlPlaneEndpoints, SupervisorRequest};
use crate::supervisor::{self, Sharing};
use crate::test_failure::TestFailure;
use crate::user::{self, User};

mod connection;
mod etcd;

use connection::SupervisorConnection;

/// A control plane whose API server is ready.
#[derive(Debug)]
pub struct ControlPlane {
    source: ControlPlaneSource,
}

/// A control plane of one test, which may kill, pause and reconfigure it. It ends with this value.
#[derive(Debug)]
pub struct PrivateControlPlane {
    plane: Arc<ControlPlane>,
}

#[derive(Debug)]
enum ControlPlaneSource {
    Started {
        endpoints: ControlPlaneEndpoints,
        connection: SupervisorConnection,
    },
    Given {
        kubeconfig: PathBuf,
        scratch: PathBuf,
    },
}

/// The reasons why a control plane did not start or rejected a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its binaries are missing.
    #[error(transparent)]
    Binaries(#[from] binaries::Error),
    /// The supervisor's program is missing.
    #[error(transparent)]
    MissingSupervisor(#[from] MissingProgram),
    /// The connection to the supervisor failed.
    #[error("{0}")]
    Supervisor(&'static str, #[source] io::Error),
    /// The supervisor reports a failure.
    #[error("{0}")]
    Refused(String),
    /// The certificate authority could not be read.
    #[error(transparent)]
    Pki(#[from] pki::Error),
    /// No client could be made.
    #[error(transparent)]
    User(#[from] user::Error),
    /// The shared control plane is a given cluster, which does not support this operation.
    #[error("{0}: not possible on the cluster given by {kubeconfig}", kubeconfig = binaries::KUBECONFIG_VARIABLE)]
    Given(&'static str),
    /// A request to etcd failed.
    #[error("{0}")]
    Etcd(String),
    /// A thread of the harness panicked.
    #[error("a thread of the harness panicked")]
    Thread(#[from] tokio::task::JoinError),
}

// === impl ControlPlane ===

impl ControlPlane {
    /// The control plane that all test binaries of a run share; the first one starts it.
    pub async fn shared() -> Result<Arc<Self>, Error> {
        Self::shared_by(Program::beside_this_executable()?).await
    }

    /// The same, run by this program.
    pub async fn shared_by(program: Program) -> Result<Arc<Self>, Error> {
        static SHARED: OnceLock<Result<Arc<ControlPlane>, String>> = OnceLock::new();
        let shared = tokio::task::spawn_blocking(move || {
            SHARED
                .get_or_init(|| {
                    Self::open_shared(&program)
                        .map(Arc::new)
                        .map_err(|error| TestFailure::describe(&error))
                })
                .clone()
        });
        shared.await?.map_err(Error::Refused)
    }

    fn open_shared(program: &Program) -> Result<Self, Error> {
        let environment = Environment::from_process(Some(program));
        if let Some(kubeconfig) =
            env::var_os(binaries::KUBECONFIG_VARIABLE).filter(|it| !it.is_empty())
        {
            // A shared control plane is never dropped, so a temporary folder would stay for ever;
            // sandboxes remove their own files from this one.
            let scratch = environment.folders.cache.join("run").join("given");
            std::fs::create_dir_all(&scratch)
                .map_err(|source| Error::Supervisor("create the folder for kubeconfigs", source))?;
            return Ok(Self {
                source: ControlPlaneSource::Given {
                    kubeconfig: kubeconfig.into(),
                    scratch,
                },
            });
        }
        let found = binaries::obtain(&environment)?;
        let (connection, endpoints) =
            SupervisorConnection::join_or_start(program, &environment, &found)?;
        Ok(Self {
            source: ControlPlaneSource::Started {
                endpoints,
                connection,
            },
        })
    }

    fn open_private(program: &Program, api_server_flags: Vec<String>) -> Result<Self, Error> {
        let found = binaries::obtain(&Environment::from_process(Some(program)))?;
        warn_about_missing(&found);
        let options = supervisor::SupervisorOptions {
            binaries: found.binaries,
            sharing: Sharing::Private,
            api_server_flags,
        };
        let (connection, endpoints) = SupervisorConnection::start(program, &options)?;
        Ok(Self {
            source: ControlPlaneSource::Started {
                endpoints,
                connection,
            },
        })
    }

    /// Writes a kubeconfig for this user, for a client or a child process.
    pub fn kubeconfig(&self, user: &User) -> Result<PathBuf, Error> {
        Ok(match &self.source {
            ControlPlaneSource::Started { endpoints, .. } => {
                let authority = Authority::open(&endpoints.folder)?;
                user.certified(&authority, &endpoints.server, &self.scratch())?
            }
            ControlPlaneSource::Given { kubeconfig, .. } => {
                user.impersonated(kubeconfig, &self.scratch())?
            }
        })
    }

    /// A kubeconfig with all permissions: that of a given cluster as it is.
    pub fn administrator_kubeconfig(&self) -> PathBuf {
        match &self.source {
            ControlPlaneSource::Started { endpoints, .. } => {
                processes::kubeconfig_in(&endpoints.folder)
            }
            ControlPlaneSource::Given { kubeconfig, .. } => kubeconfig.clone(),
        }
    }

    /// A client that acts as this user.
    pub async fn client(&self, user: &User) -> Result<kube::Client, Error> {
        Ok(user::client_from(&self.kubeconfig(user)?).await?)
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> Result<AuditLog, Error> {
        match &self.source {
            ControlPlaneSource::Started { endpoints, .. } => {
                Ok(AuditLog::at(endpoints.folder.join("audit.log")))
            }
            ControlPlaneSource::Given { .. } => Err(Error::Given("reading the audit log")),
        }
    }

    /// Whether the control plane runs on after the test, so that the test must clean up.
    pub fn outlives_its_test(&self) -> bool {
        match &self.source {
            ControlPlaneSource::Started { connection, .. } => !connection.is_private(),
            ControlPlaneSource::Given { .. } => true,
        }
    }

    /// Whether a controller manager deletes dependents and namespaces.
    pub fn has_controller_manager(&self) -> bool {
        match &self.source {
            ControlPlaneSource::Started { endpoints, .. } => endpoints.has_controller_manager,
            ControlPlaneSource::Given { .. } => true,
        }
    }

    /// The process id of the supervisor, and the folder that it removes at its end.
    pub fn supervisor_pid_and_folder(&self) -> Result<(u32, &Path), Error> {
        self.endpoints()
            .map(|endpoints| (endpoints.supervisor, endpoints.folder.as_path()))
    }

    /// A folder for files of the tests, removed with the control plane.
    pub fn scratch(&self) -> PathBuf {
        match &self.source {
            ControlPlaneSource::Started { endpoints, .. } => endpoints.folder.join("scratch"),
            ControlPlaneSource::Given { scratch, .. } => scratch.clone(),
        }
    }

    fn endpoints(&self) -> Result<&ControlPlaneEndpoints, Error> {
        match &self.source {
            ControlPlaneSource::Started { endpoints, .. } => Ok(endpoints),
            ControlPlaneSource::Given { .. } => Err(Error::Given("reaching its processes")),
        }
    }
}

// === impl PrivateControlPlane ===

impl PrivateControlPlane {
    /// Starts a control plane that no other test uses.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(&[]).await
    }

    /// The same with additional flags of the API server, such as `--max-requests-inflight=4`.
    pub async fn start_with(api_server_flags: &[&str]) -> Result<Self, Error> {
        Self::open(Program::beside_this_executable()?, api_server_flags).await
    }

    /// The same, run by this program.
    pub async fn start_by(program: Program) -> Result<Self, Error> {
        Self::open(program, &[]).await
    }

    async fn open(program: Program, api_server_flags: &[&str]) -> Result<Self, Error> {
        let flags = api_server_flags
            .iter()
            .map(|&flag| flag.to_owned())
            .collect();
        let plane =
            tokio::task::spawn_blocking(move || ControlPlane::open_private(&program, flags))
                .await??;
        Ok(Self {
            plane: Arc::new(plane),
        })
    }

    /// A handle that tests can share; the control plane ends with the last one.
    pub fn handle(&self) -> Arc<ControlPlane> {
        Arc::clone(&self.plane)
    }

    /// Ends a process at once, as a crash does.
    pub async fn kill(&self, component: Component) -> Result<(), Error> {
        self.request(SupervisorRequest::Kill(component)).await
    }

    /// Stops a process (SIGSTOP): its connections stay open, but it does not answer.
    pub async fn pause(&self, component: Component) -> Result<(), Error> {
        self.request(SupervisorRequest::Pause(component)).await
    }

    /// Continues a paused process.
    pub async fn resume(&self, component: Component) -> Result<(), Error> {
        self.request(SupervisorRequest::Resume(component)).await
    }

    /// Starts a killed process and waits until it serves.
    pub async fn revive(&self, component: Component) -> Result<(), Error> {
        self.request(SupervisorRequest::Start(component)).await
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
        self.request(SupervisorRequest::SetApiServerFlags(flags))
            .await?;
        self.restart(Component::ApiServer).await
    }

    /// Makes etcd drop every revision but the current one.
    pub async fn compact(&self) -> Result<(), Error> {
        etcd::compact(&self.endpoints()?.etcd)
            .await
            .map_err(Error::Etcd)
    }

    /// Makes every resource version so far too old to watch from: compacts etcd, and restarts the
    /// API server, whose watch cache would still have them.
    pub async fn expire_resource_versions(&self) -> Result<(), Error> {
        self.compact().await?;
        self.restart(Component::ApiServer).await
    }

    async fn request(&self, request: SupervisorRequest) -> Result<(), Error> {
        let plane = Arc::clone(&self.plane);
        tokio::task::spawn_blocking(move || match &plane.source {
            ControlPlaneSource::Started { connection, .. } => connection.request(&request),
            ControlPlaneSource::Given { .. } => Err(Error::Given("controlling its processes")),
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

fn warn_about_missing(found: &FoundBinaries) {
    if found.binaries.kube_controller_manager.is_none() {
        binaries::print_status(WITHOUT_CONTROLLER_MANAGER);
    }
}
