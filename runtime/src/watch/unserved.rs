//! Why the server does not serve a kind, and when that may have changed.
//!
//! The definition of the kind is watched if that is allowed, so that a kind which comes is noticed
//! at once and nobody is asked again and again. Otherwise the server is asked in growing pauses.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::AsyncBufReadExt as _;
use kopf_core::handler::selector::Selectors;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use crate::client::requests::{self, KindApi};
use crate::client::resource::{KindSpec, ResourceSpec, Scope, StatusSubresource};

pub(crate) const DEFINITIONS: ResourceSpec = ResourceSpec {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    scope: Scope::Cluster,
    status: StatusSubresource::Present,
};

/// How long the absence of a definition is believed without asking again.
const LONGEST_FAITH: Duration = Duration::from_secs(300);

/// What is known about a kind that is not served.
pub(super) struct UnservedKind {
    kind: KindSpec,
    name: String,
    definitions: KindApi,
    /// Where to watch the definition from, if that is allowed.
    position: Option<String>,
    why: Option<UnservedReason>,
}

/// Why a kind is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnservedReason {
    /// There is no such kind, and there are no objects of it.
    Gone,
    /// Its objects are there, in versions that this operator does not know.
    OtherVersions(Vec<String>),
    /// It is defined, and will be served in a moment.
    Coming,
    /// Nobody can tell.
    Unknown,
}

/// What came of a look.
pub(super) struct Finding {
    pub(super) why: UnservedReason,
    /// The same for people.
    pub(super) story: String,
    /// Whether it is not what was found last.
    pub(super) is_news: bool,
}

#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    versions: Vec<DefinitionVersion>,
}

#[derive(Deserialize)]
struct DefinitionVersion {
    name: String,
    served: bool,
}

// === impl UnservedKind ===

impl UnservedKind {
    pub(super) fn new(api: &KindApi) -> Self {
        let kind = api.spec().clone();
        let name = format!("{}.{}", kind.plural, kind.group);
        let selectors = Selectors {
            fields: BTreeMap::from([("metadata.name".to_owned(), name.clone())]),
            ..Selectors::default()
        };
        Self {
            kind,
            name,
            definitions: KindApi::new(api.client().clone(), DEFINITIONS, selectors)
                .with_timeout(api.timeout()),
            position: None,
            why: None,
        }
    }

    /// Finds out why the kind is not served.
    pub(super) async fn look(&mut self) -> Finding {
        self.position = None;
        let (why, hint) = match self.definitions.list_page(None, 1, None).await {
            Ok(page) => {
                self.position = Some(page.resource_version);
                let definition = page.items.first().map(|text| self.read(text));
                (definition.unwrap_or(UnservedReason::Gone), String::new())
            }
            Err(error) if error.is_forbidden() => {
                let hint = format!(
                    "; without the permission to list and watch customresourcedefinitions \
                     (at least {:?}), it is noticed late that it comes",
                    self.name
                );
                (self.discover().await, hint)
            }
            Err(_) => (UnservedReason::Unknown, String::new()),
        };
        let is_news = self.why.as_ref() != Some(&why);
        self.why = Some(why.clone());
        Finding {
            story: format!("{}{hint}", self.story(&why)),
            why,
            is_news,
        }
    }

    /// Waits until it makes sense to ask again.
    pub(super) async fn changed(&self, pause: Duration) {
        let (Some(position), Some(why)) = (&self.position, &self.why) else {
            return tokio::time::sleep(pause).await;
        };
        let patience = match why {
            UnservedReason::Gone | UnservedReason::OtherVersions(_) => LONGEST_FAITH,
            UnservedReason::Coming | UnservedReason::Unknown => pause,
        };
        let news = async {
            let opened = self.definitions.watch(None, position, patience).await;
            let Ok(body) = opened else {
                return tokio::time::sleep(pause).await;
            };
            let mut body = std::pin::pin!(body);
            let mut line = Vec::new();
            loop {
                line.clear();
                match body.read_until(b'\n', &mut line).await {
                    Ok(length) if length > 0 && is_bookmark(&line) => {}
                    Ok(length) if length > 0 => return,
                    Ok(_) | Err(_) => return tokio::time::sleep(pause).await,
                }
            }
        };
        // A silent end of this is nothing but another question.
        let _ = timeout(patience, news).await;
    }

    fn read(&self, text: &RawValue) -> UnservedReason {
        let Ok(definition) = serde_json::from_str::<Definition>(text.get()) else {
            return UnservedReason::Unknown;
        };
        let served = definition.spec.versions.into_iter();
        self.among(served.filter(|it| it.served).map(|it| it.name).collect())
    }

    /// What anybody may ask: in which versions of the group there is such a kind.
    async fn discover(&self) -> UnservedReason {
        let client = self.definitions.client();
        let KindSpec { group, plural, .. } = &self.kind;
        let Ok(groups) = client.list_api_groups().await else {
            return UnservedReason::Unknown;
        };
        let mut served = Vec::new();
        let groups = groups.groups.into_iter().filter(|it| *it.name == **group);
        for version in groups.flat_map(|it| it.versions) {
            let resources = client.list_api_group_resources(&version.group_version);
            match resources.await.map_err(requests::Error::from) {
                Ok(list) if list.resources.iter().any(|it| *it.name == **plural) => {
                    served.push(version.version);
                }
                Ok(_) | Err(requests::Error::NotFound) => {}
                Err(_) => return UnservedReason::Unknown,
            }
        }
        if served.is_empty() {
            UnservedReason::Gone
        } else {
            self.among(served)
        }
    }

    fn among(&self, served: Vec<String>) -> UnservedReason {
        if served.iter().any(|version| **version == *self.kind.version) {
            UnservedReason::Coming
        } else {
            UnservedReason::OtherVersions(served)
        }
    }

    fn story(&self, why: &UnservedReason) -> String {
        let version = &self.kind.version;
        match why {
            UnservedReason::Gone => "the server does not serve this kind (yet)".to_owned(),
            UnservedReason::Coming => {
                "the server does not serve this kind yet, but knows it".to_owned()
            }
            UnservedReason::Unknown => "the server does not serve this kind".to_owned(),
            UnservedReason::OtherVersions(served) if served.is_empty() => {
                "the server does not serve any version of this kind".to_owned()
            }
            UnservedReason::OtherVersions(served) => format!(
                "the server does not serve this kind in version {version}, which the operator is \
                 made for, but in {}",
                served.join(", ")
            ),
        }
    }
}

fn is_bookmark(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Event<'a> {
        r#type: &'a str,
    }
    serde_json::from_slice::<Event<'_>>(line).is_ok_and(|event| event.r#type == "BOOKMARK")
}
