//! `inspect --watch`: prints objects again when their handling changes.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write as _};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, stream};
use kopf_core::inspection::Inspection;
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use kube::core::Status;
use tokio::time::sleep;

use super::args::InspectFormat;
use super::cluster::{InspectedObjects, KindObjects};
use super::{InspectError, InspectedObject, InspectionPrinter, document, table};

/// The pause before a broken watch begins again.
const PAUSE: Duration = Duration::from_secs(1);

/// A change of an object.
enum WatchedChange {
    Present(DynamicObject),
    Gone(DynamicObject),
}

impl InspectedObjects<'_> {
    /// Prints objects whose handling changes, for ever.
    pub(super) async fn watch(
        &self,
        printer: &InspectionPrinter,
        printed: Vec<InspectedObject>,
    ) -> Result<(), InspectError> {
        let mut known: HashMap<String, Inspection> = printed
            .into_iter()
            .map(|object| (object.uid, object.inspection))
            .collect();
        let streams = self.kinds.iter().map(|kind| {
            let changes = kind.changes(self.name());
            Box::pin(changes.map(move |change| (kind, change)))
        });
        let mut changes = stream::select_all(streams);
        while let Some((kind, change)) = changes.next().await {
            match change? {
                WatchedChange::Present(object) => {
                    let Some(object) = self.inspect(kind, &object) else {
                        continue;
                    };
                    let inspection = object.inspection.clone();
                    let former = known.insert(object.uid.clone(), inspection);
                    if former.as_ref() != Some(&object.inspection) {
                        print(&printer.update(&object))?;
                    }
                }
                WatchedChange::Gone(object) => {
                    let uid = object.metadata.uid.clone().unwrap_or_default();
                    if known.remove(&uid).is_some()
                        && let Some(object) = self.inspect(kind, &object)
                    {
                        print(&printer.end(&object))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The position in the changes of one kind.
#[derive(Default)]
struct Following {
    /// Objects that were listed, and are still to be shown.
    listed: VecDeque<DynamicObject>,
    /// The version after the last change; none if the objects have to be listed.
    version: Option<String>,
    events: Option<BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>>,
}

impl KindObjects {
    /// The changes of the objects, beginning with all that are there. It ends with an error that
    /// no repetition mends.
    fn changes<'s>(
        &'s self,
        name: Option<&'s str>,
    ) -> impl Stream<Item = Result<WatchedChange, InspectError>> + 's {
        stream::try_unfold(Following::default(), move |mut following| async move {
            loop {
                if let Some(object) = following.listed.pop_front() {
                    return Ok(Some((WatchedChange::Present(object), following)));
                }
                if let Some(change) = self.advance(&mut following, name).await? {
                    return Ok(Some((change, following)));
                }
            }
        })
    }

    /// Takes one step: lists, watches, or waits for an event.
    async fn advance(
        &self,
        following: &mut Following,
        name: Option<&str>,
    ) -> Result<Option<WatchedChange>, InspectError> {
        let Some(version) = &following.version else {
            let listed = self.list(name).await?;
            following.listed = listed.objects.into();
            following.version = Some(listed.version);
            return Ok(None);
        };
        let Some(events) = &mut following.events else {
            let params = match name {
                Some(name) => WatchParams::default().fields(&format!("metadata.name={name}")),
                None => WatchParams::default(),
            };
            match self.api.watch(&params, version).await {
                Ok(events) => following.events = Some(events.boxed()),
                Err(kube::Error::Api(status)) if is_refused(&status) => {
                    return Err(self.failed("watch", kube::Error::Api(status)));
                }
                Err(_) => following.restart().await,
            }
            return Ok(None);
        };
        let (change, version) = match events.next().await {
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                let version = object.metadata.resource_version.clone();
                (Some(WatchedChange::Present(object)), version)
            }
            Some(Ok(WatchEvent::Deleted(object))) => {
                let version = object.metadata.resource_version.clone();
                (Some(WatchedChange::Gone(object)), version)
            }
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                (None, Some(bookmark.metadata.resource_version))
            }
            // The server ends each watch after some minutes.
            None => {
                following.events = None;
                return Ok(None);
            }
            Some(Ok(WatchEvent::Error(_)) | Err(_)) => {
                following.restart().await;
                return Ok(None);
            }
        };
        following.version = version;
        Ok(change)
    }
}

impl Following {
    async fn restart(&mut self) {
        sleep(PAUSE).await;
        *self = Self::default();
    }
}

fn is_refused(status: &Status) -> bool {
    matches!(status.code, 401 | 403)
}

impl InspectionPrinter {
    fn update(self, object: &InspectedObject) -> String {
        let now = jiff::Timestamp::now();
        match self.format {
            InspectFormat::Table => table::line(object, table::Width::Normal, now),
            InspectFormat::Wide => table::line(object, table::Width::Wide, now),
            InspectFormat::Json => document::json_line(object),
            InspectFormat::Yaml => document::yaml_document(object),
        }
    }

    fn end(self, object: &InspectedObject) -> String {
        match self.format {
            InspectFormat::Table | InspectFormat::Wide => {
                let clock = jiff::Timestamp::now().strftime("%H:%M:%SZ").to_string();
                format!("{clock}  {}  {}  gone\n", object.kind, object.full_name())
            }
            InspectFormat::Json => document::gone_line(object),
            InspectFormat::Yaml => format!("---\n{}", document::gone_line(object)),
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
