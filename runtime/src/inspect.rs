//! The commands `inspect` and `unstick`: what objects show of their handling, without the operator.

mod args;
mod cluster;
mod details;
mod document;
mod table;
mod text;
mod unstick;
mod watched;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use kopf_core::handler::HandlerId;
use kopf_core::inspection::{Inspection, Inspector};
use kopf_core::object::ObjectView;
use kopf_core::object::essence::EssenceRules;
use kopf_core::persistence::Persistence;
use kopf_core::selection::resolve::Wanted;
use kube::Client;
use serde_json::Value;

pub use self::args::{InspectArgs, UnstickArgs};
use self::args::{InspectFormat, InspectTarget};
use self::cluster::InspectedObjects;
use crate::client::requests;

/// The time for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// An operator whose objects are inspected. It need not run.
#[derive(Debug)]
pub struct InspectedOperator {
    /// The storages on its objects.
    pub persistence: Persistence,
    pub(crate) kinds: Vec<InspectedKind>,
}

/// A kind of the operator, or a selection of kinds.
#[derive(Debug)]
pub(crate) struct InspectedKind {
    pub(crate) wanted: Wanted,
    pub(crate) handlers: KnownHandlers,
}

/// What is known of the handlers of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownHandlers {
    pub(crate) ids: Vec<HandlerId>,
    /// The fields whose changes count.
    pub(crate) rules: EssenceRules,
}

/// The reason for which objects cannot be inspected or released.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The API server serves no such kind.
    #[error("the cluster serves no {0}: is its CustomResourceDefinition applied?")]
    UnknownKind(String),
    /// Several kinds have the name.
    #[error("several kinds match {name}: name one of {candidates}")]
    AmbiguousKind {
        /// The name.
        name: String,
        /// The kinds, with their groups.
        candidates: String,
    },
    /// There is no such object.
    #[error("there is no {0}")]
    UnknownObject(String),
    /// No kind is given, and the kinds of the cluster cannot be listed.
    #[error("the CustomResourceDefinitions cannot be listed: name a kind")]
    Definitions(#[source] kube::Error),
    /// Discovery failed.
    #[error("the kinds of the cluster cannot be read")]
    Discovery(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Objects cannot be listed or written.
    #[error("{action}")]
    Request {
        /// What failed.
        action: String,
        /// The reason.
        #[source]
        source: kube::Error,
    },
    /// There is no cluster, or no access to it.
    #[error("there is no access to a cluster")]
    Connection(#[source] kube::Error),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
    /// The command changes objects, and was not confirmed.
    #[error("nothing is changed: add --yes to do it")]
    NotConfirmed,
}

impl From<requests::Error> for InspectError {
    fn from(error: requests::Error) -> Self {
        Self::Discovery(Box::new(error))
    }
}

impl InspectedOperator {
    /// Any operator with these storages, whose kinds and handlers are not known.
    #[must_use]
    pub fn unknown(persistence: impl Into<Persistence>) -> Self {
        Self {
            persistence: persistence.into(),
            kinds: Vec::new(),
        }
    }

    /// Connects to the cluster of the kubeconfig, and prints what its objects show.
    #[must_use]
    pub fn inspect_main(&self, args: &InspectArgs) -> ExitCode {
        Self::run(async {
            let client = Client::try_default().await;
            self.inspect(client.map_err(InspectError::Connection)?, args)
                .await
        })
    }

    /// Connects to the cluster of the kubeconfig, and removes finalizer and records from objects.
    #[must_use]
    pub fn unstick_main(&self, args: &UnstickArgs) -> ExitCode {
        Self::run(async {
            let client = Client::try_default().await;
            self.unstick(client.map_err(InspectError::Connection)?, args)
                .await
        })
    }

    fn run(done: impl Future<Output = Result<(), InspectError>>) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let done = match runtime {
            Ok(runtime) => runtime.block_on(done),
            Err(error) => Err(error.into()),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // There is nowhere else to report to.
                let _ = writeln!(io::stderr(), "error: {}", text::chain(&error));
                ExitCode::FAILURE
            }
        }
    }

    /// Prints what objects show of their handling.
    pub(crate) async fn inspect(
        &self,
        client: Client,
        args: &InspectArgs,
    ) -> Result<(), InspectError> {
        let objects =
            InspectedObjects::find(self, client, args.target.as_ref(), &args.namespaces).await?;
        let found = objects.list().await?;
        if let Some(InspectTarget { name: Some(_), .. }) = &args.target
            && found.is_empty()
            && !args.watch
        {
            return Err(InspectError::UnknownObject(objects.describe_target()));
        }
        let printer = InspectionPrinter {
            format: args.output,
            is_single: args.target.as_ref().is_some_and(|it| it.name.is_some()),
        };
        closed_pipe_is_fine(printer.print(&found))?;
        if args.watch {
            closed_pipe_is_fine(objects.watch(&printer, found).await)?;
        }
        Ok(())
    }

    fn inspector<'a>(&'a self, handlers: &'a KnownHandlers) -> Inspector<'a> {
        Inspector {
            persistence: &self.persistence,
            handlers: &handlers.ids,
            rules: &handlers.rules,
            now: jiff::Timestamp::now(),
        }
    }
}

/// Prints inspected objects.
#[derive(Clone, Copy, Debug)]
struct InspectionPrinter {
    format: InspectFormat,
    /// Whether one object was asked for, which is shown in detail.
    is_single: bool,
}

impl InspectionPrinter {
    fn print(self, found: &[InspectedObject]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(self.text(found).as_bytes())?;
        stdout.flush()
    }

    fn text(self, found: &[InspectedObject]) -> String {
        let now = jiff::Timestamp::now();
        match self.format {
            InspectFormat::Table if self.is_single => {
                let texts: Vec<String> = found.iter().map(|it| details::of(it, now)).collect();
                texts.join("\n")
            }
            InspectFormat::Table => table::of(found, table::Width::Normal, now),
            InspectFormat::Wide => table::of(found, table::Width::Wide, now),
            InspectFormat::Json => document::json(found),
            InspectFormat::Yaml => document::yaml(found),
        }
    }
}

/// An inspected object.
#[derive(Clone, Debug)]
struct InspectedObject {
    api_version: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    uid: String,
    inspection: Inspection,
}

impl InspectedObject {
    fn new(body: &Value, kind: &str, inspector: &Inspector<'_>) -> Self {
        let view = ObjectView::new(body);
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self {
            api_version: text(view.api_version()),
            kind: kind.to_owned(),
            namespace: view.namespace().map(str::to_owned),
            name: text(view.name()),
            uid: text(view.uid()),
            inspection: inspector.inspect(view),
        }
    }

    /// `namespace/name`, or the name of an object of the cluster.
    fn full_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// A reader that ends early, as `head` does, has seen what it wanted.
fn closed_pipe_is_fine<E: Into<InspectError>>(printed: Result<(), E>) -> Result<(), InspectError> {
    match printed.map_err(Into::into) {
        Err(InspectError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}
