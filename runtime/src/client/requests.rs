//! Requests for one kind: list, watch, get, create and patch, with objects as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::AsyncBufRead;
use http::{Method, Request, header};
use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::machine::answer::{Answer, RequestFailure};
use kopf_core::machine::request::{ObjectRequest, PatchContent, PatchEndpoint, ReadVerb};
use kube::Client;
use kube::core::Request as Paths;
use kube::core::params::{GetParams, ListParams, WatchParams};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::client::answer::{answer_stream, answer_text};
use crate::client::resource::{KindName, KindSpec, ResourceDescription, Scope};

/// The default time for a response; a watch responds at once and then streams.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// Few, so that connections are reused: thousands of objects that wait for the API server would
/// open one each when it returns.
const MAX_REQUESTS: usize = 16;

/// The API of one kind.
#[derive(Clone)]
pub(crate) struct KindApi {
    client: Client,
    spec: KindSpec,
    name: Arc<KindName>,
    description: ResourceDescription,
    selectors: WatchSelectors,
    content: ObjectContent,
    requests: Arc<Semaphore>,
    timeout: Duration,
}

/// The part of each object that is listed and watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectContent {
    Whole,
    Metadata,
}

/// The failure of a request, by what a caller can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the resource version or the continue token has expired")]
    Expired,
    #[error("the object does not exist")]
    NotFound,
    #[error("the object was changed meanwhile: {0}")]
    Conflict(String),
    #[error("the server rejected the content: {0}")]
    Invalid(String),
    /// A permission is missing, or an admission policy or webhook forbids the request.
    #[error("the server forbids the request: {0}")]
    Forbidden(String),
    #[error("the server failed with status {code}: {message}")]
    Status { code: u16, message: String },
    #[error("the server asked to retry later: {message}")]
    Busy {
        message: String,
        retry_after: Option<Duration>,
    },
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the response is not the expected JSON")]
    Decode(#[source] serde_json::Error),
    #[error("the request failed: {0}")]
    Request(#[source] Box<kube::Error>),
}

/// The time for which the API server replays the changes of one object, which it sends at once.
const REPLAY: u32 = 1;

/// The characters that are escaped in a name: all but those that never have a meaning in a URL.
const NOT_IN_SEGMENTS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b':');

/// The longest pause that the API server can ask for; it asks for seconds, never for years.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// One page of a list.
#[derive(Debug)]
pub(crate) struct ListPage<T> {
    pub(crate) items: Vec<T>,
    pub(crate) resource_version: String,
    pub(crate) next: Option<String>,
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: RawListMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawListMeta {
    resource_version: String,
    r#continue: Option<String>,
}

#[derive(Deserialize)]
struct MetadataItem<'a> {
    #[serde(borrow)]
    metadata: BTreeMap<String, &'a RawValue>,
}

/// A line of a watch.
#[derive(Deserialize)]
struct ReplayedEvent<'a> {
    r#type: String,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The objects of one name.
#[derive(Deserialize)]
struct NamedObjects<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    kind: Option<IgnoredAny>,
    api_version: Option<IgnoredAny>,
}

// === impl KindApi ===

impl KindApi {
    /// The API of a kind; only the selected objects are listed and watched.
    pub(crate) fn new(
        client: Client,
        spec: impl Into<KindSpec>,
        selectors: WatchSelectors,
    ) -> Self {
        let spec = spec.into();
        Self {
            client,
            description: ResourceDescription::declared(&spec),
            name: Arc::new(spec.kind_name()),
            spec,
            selectors,
            content: ObjectContent::Whole,
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            timeout: RESPONSE_TIMEOUT,
        }
    }

    /// Lists and watches only the metadata of objects.
    pub(crate) fn metadata_only(self) -> Self {
        Self {
            content: ObjectContent::Metadata,
            ..self
        }
    }

    /// Shares this description of the kind.
    pub(crate) fn with_description(self, description: ResourceDescription) -> Self {
        Self {
            description,
            ..self
        }
    }

    pub(crate) fn description(&self) -> &ResourceDescription {
        &self.description
    }

    /// Sets the time that the API server has to respond.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The time that the API server has to respond.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Whether an object can leave the list without being deleted.
    pub(crate) fn is_selective(&self) -> bool {
        !self.selectors.is_empty()
    }

    pub(crate) fn spec(&self) -> &KindSpec {
        &self.spec
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) async fn list_page(
        &self,
        namespace: Option<&str>,
        limit: u32,
        page: Option<String>,
    ) -> Result<ListPage<Arc<RawValue>>, Error> {
        let params = ListParams {
            label_selector: self.selectors.label_selector(),
            field_selector: self.selectors.field_selector(),
            limit: Some(limit),
            continue_token: page,
            ..ListParams::default()
        };
        let paths = self.paths(namespace);
        let request = match self.content {
            ObjectContent::Whole => paths.list(&params),
            ObjectContent::Metadata => paths.list_metadata(&params),
        };
        let text = self.send(request.map_err(build)?).await?;
        read_page(&text, |item| Ok(item.to_owned().into()))
    }

    /// Lists the metadata of all objects, including those that are not selected.
    pub(crate) async fn list_metadata_page(
        &self,
        namespace: Option<&str>,
        limit: u32,
        page: Option<String>,
    ) -> Result<ListPage<Value>, Error> {
        let params = ListParams {
            limit: Some(limit),
            continue_token: page,
            ..ListParams::default()
        };
        let request = self
            .paths(namespace)
            .list_metadata(&params)
            .map_err(build)?;
        let text = self.send(request).await?;
        read_page(&text, read_metadata)
    }

    /// Parses an object of a list or a watch.
    pub(crate) fn read(&self, text: &RawValue) -> Result<Value, serde_json::Error> {
        let mut object = serde_json::from_str(text.get())?;
        self.add_type_meta(&mut object);
        Ok(object)
    }

    /// The text of an object with `apiVersion` and `kind`, which lists of built-in kinds leave out.
    pub(crate) fn with_type_meta(
        &self,
        text: &Arc<RawValue>,
    ) -> Result<Arc<RawValue>, serde_json::Error> {
        let type_meta: TypeMeta = serde_json::from_str(text.get())?;
        if type_meta.kind.is_some() && type_meta.api_version.is_some() {
            return Ok(Arc::clone(text));
        }
        let object = self.read(text)?;
        Ok(to_raw_value(&object)?.into())
    }

    pub(crate) async fn watch(
        &self,
        namespace: Option<&str>,
        version: &str,
        server_timeout: Duration,
    ) -> Result<impl AsyncBufRead + use<>, Error> {
        let params = WatchParams {
            label_selector: self.selectors.label_selector(),
            field_selector: self.selectors.field_selector(),
            timeout: u32::try_from(server_timeout.as_secs()).ok(),
            ..WatchParams::default()
        };
        let paths = self.paths(namespace);
        let request = match self.content {
            ObjectContent::Whole => paths.watch(&params, version),
            ObjectContent::Metadata => paths.watch_metadata(&params, version),
        };
        self.with_deadline(answer_stream(&self.client, request.map_err(build)?))
            .await
    }

    pub(crate) async fn get(&self, namespace: Option<&str>, name: &str) -> Result<Value, Error> {
        let request = self.get_request(namespace, name)?;
        self.send(request).await.and_then(|text| decode(&text))
    }

    /// Sends a request for one object that a machine asks for.
    pub(crate) async fn request_object(
        &self,
        namespace: Option<&str>,
        name: &str,
        request: &ObjectRequest<'_>,
    ) -> Answer {
        let built = match request {
            ObjectRequest::Read(verb) | ObjectRequest::ReadMetadata(verb) => match verb {
                ReadVerb::Get => self.get_request(namespace, name),
                ReadVerb::List => self.list_request(namespace, name),
            },
            ObjectRequest::NextState { after } => self.replay_request(namespace, name, after),
            ObjectRequest::Patch {
                endpoint, content, ..
            } => self.patch_request(namespace, name, *endpoint, *content),
        };
        let sent = match built {
            Ok(built) => self.send_once(built).await,
            Err(error) => Err(RequestFailure::ConnectionLost(error.to_string())),
        };
        let text = match sent {
            Ok(text) => text,
            Err(failure) => return Answer::Failed(failure),
        };
        let object = match request {
            ObjectRequest::NextState { .. } => first_state(&text).map(Cow::Borrowed),
            ObjectRequest::Read(ReadVerb::List) => self.listed_object(&text).map(Cow::Owned),
            ObjectRequest::ReadMetadata(ReadVerb::List) => only_item(&text).map(Cow::Borrowed),
            _ => Ok(Cow::Borrowed(text.as_str())),
        };
        match object {
            Ok(object) => Answer::read(request, &object),
            Err(failure) => Answer::Failed(failure),
        }
    }

    /// The object of a list by its name, with `apiVersion` and `kind`.
    fn listed_object(&self, list: &str) -> Result<String, RequestFailure> {
        let mut object: Value =
            serde_json::from_str(only_item(list)?).map_err(|error| unreadable(&error))?;
        self.add_type_meta(&mut object);
        Ok(object.to_string())
    }

    /// Creates an object, and returns it as the server stored it.
    pub(crate) async fn create(
        &self,
        namespace: Option<&str>,
        body: &Value,
    ) -> Result<Value, Error> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.collection(namespace))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .body(serde_json::to_vec(body).map_err(Error::Decode)?)
            .map_err(|error| Error::Request(Box::new(kube::Error::HttpError(error))))?;
        self.send(request).await.and_then(|text| decode(&text))
    }

    /// Sends one patch, and returns the object as the server stored it.
    pub(crate) async fn patch(
        &self,
        namespace: Option<&str>,
        name: &str,
        endpoint: PatchEndpoint,
        content: PatchContent<'_>,
    ) -> Result<Value, Error> {
        let request = self.patch_request(namespace, name, endpoint, content)?;
        self.send(request).await.and_then(|text| decode(&text))
    }

    /// The kind and its namespace, for messages.
    pub(crate) fn describe(&self, namespace: Option<&str>) -> String {
        let KindSpec { plural, group, .. } = &self.spec;
        let dot = if group.is_empty() { "" } else { "." };
        match namespace {
            Some(namespace) => format!("{plural}{dot}{group} in {namespace}"),
            None => format!("{plural}{dot}{group}"),
        }
    }

    fn paths(&self, namespace: Option<&str>) -> Paths {
        Paths::new(self.collection(namespace))
    }

    fn collection(&self, namespace: Option<&str>) -> String {
        let KindSpec {
            group,
            version,
            plural,
            ..
        } = &self.spec;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        match (self.spec.scope, namespace) {
            (Scope::Namespaced, Some(namespace)) => {
                format!("{root}/namespaces/{namespace}/{plural}")
            }
            (Scope::Namespaced | Scope::Cluster, _) => format!("{root}/{plural}"),
        }
    }

    fn get_request(&self, namespace: Option<&str>, name: &str) -> Result<Request<Vec<u8>>, Error> {
        self.paths(namespace)
            .get(&segment(name), &GetParams::default())
            .map_err(build)
    }

    /// A list of the object with this name.
    fn list_request(&self, namespace: Option<&str>, name: &str) -> Result<Request<Vec<u8>>, Error> {
        let params = ListParams {
            field_selector: Some(format!("metadata.name={}", selector_value(name))),
            ..ListParams::default()
        };
        self.paths(namespace).list(&params).map_err(build)
    }

    /// A watch that replays the changes of an object since this version.
    fn replay_request(
        &self,
        namespace: Option<&str>,
        name: &str,
        version: &str,
    ) -> Result<Request<Vec<u8>>, Error> {
        let params = WatchParams {
            field_selector: Some(format!("metadata.name={}", selector_value(name))),
            timeout: Some(REPLAY),
            bookmarks: false,
            ..WatchParams::default()
        };
        self.paths(namespace).watch(&params, version).map_err(build)
    }

    fn patch_request(
        &self,
        namespace: Option<&str>,
        name: &str,
        endpoint: PatchEndpoint,
        content: PatchContent<'_>,
    ) -> Result<Request<Vec<u8>>, Error> {
        let suffix = match endpoint {
            PatchEndpoint::Object => "",
            PatchEndpoint::Status => "/status",
        };
        let uri = format!("{}/{}{suffix}", self.collection(namespace), segment(name));
        let (content_type, content) = match content {
            PatchContent::Merge(value) => ("application/merge-patch+json", value),
            PatchContent::Json(value) => ("application/json-patch+json", value),
        };
        Request::builder()
            .method(Method::PATCH)
            .uri(uri)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, "application/json")
            .body(serde_json::to_vec(content).map_err(Error::Decode)?)
            .map_err(|error| Error::Request(Box::new(kube::Error::HttpError(error))))
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<String, Error> {
        // The semaphore is never closed; without a permit the request would only exceed the limit.
        let _permit = self.requests.acquire().await.ok();
        self.with_deadline(answer_text(&self.client, request)).await
    }

    async fn send_once(&self, request: Request<Vec<u8>>) -> Result<String, RequestFailure> {
        let _permit = self.requests.acquire().await.ok();
        let request = answer_text(&self.client, request);
        match tokio::time::timeout(self.timeout, request).await {
            Ok(answer) => answer.map_err(|error| failure(&error)),
            Err(_) => Err(RequestFailure::TimedOut),
        }
    }

    async fn with_deadline<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(answer) => answer.map_err(Error::from),
            Err(_) => Err(Error::Timeout),
        }
    }

    /// The `apiVersion` and `kind` of its objects.
    pub(crate) fn name(&self) -> &Arc<KindName> {
        &self.name
    }

    /// Adds `apiVersion` and `kind`, which lists of built-in kinds leave out.
    fn add_type_meta(&self, item: &mut Value) {
        let Some(object) = item.as_object_mut() else {
            return;
        };
        if !object.contains_key("kind") {
            object.insert("kind".to_owned(), Value::from(&*self.name.kind));
        }
        if !object.contains_key("apiVersion") {
            let api_version = Value::from(&*self.name.api_version);
            object.insert("apiVersion".to_owned(), api_version);
        }
    }
}

// === impl Error ===

impl Error {
    /// Whether the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Timeout => true,
            Self::Status { code, .. } => *code >= 500,
            Self::Request(_) => true,
            Self::Expired
            | Self::NotFound
            | Self::Conflict(_)
            | Self::Invalid(_)
            | Self::Forbidden(_)
            | Self::Decode(_) => false,
        }
    }

    /// Whether the operator lacks the permission for the request.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden(_))
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Converts the `Status` object of a watch stream.
    pub(crate) fn from_status(status: kube::core::Status) -> Self {
        kube::Error::Api(Box::new(status)).into()
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = &error else {
            return Self::Request(Box::new(error));
        };
        match status.code {
            404 => Self::NotFound,
            409 => Self::Conflict(status.message.clone()),
            410 => Self::Expired,
            400 | 413 | 422 => Self::Invalid(status.message.clone()),
            code if code == 429 || (code >= 500 && retry_after(status).is_some()) => Self::Busy {
                message: status.message.clone(),
                retry_after: retry_after(status),
            },
            403 => Self::Forbidden(status.message.clone()),
            code => Self::Status {
                code,
                message: status.message.clone(),
            },
        }
    }
}

/// The pause that the API server asks for.
fn retry_after(status: &kube::core::Status) -> Option<Duration> {
    let details = status.details.as_ref()?;
    let seconds = u64::from(details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
}

fn failure(error: &kube::Error) -> RequestFailure {
    match error {
        kube::Error::Api(status) => status_failure(status),
        error => RequestFailure::ConnectionLost(error.to_string()),
    }
}

fn status_failure(status: &kube::core::Status) -> RequestFailure {
    RequestFailure::Status {
        code: status.code,
        message: status.message.clone(),
        retry_after: retry_after(status),
    }
}

/// The name of an object as a part of a path: those of roles may have `?`, `#` and spaces.
fn segment(name: &str) -> String {
    utf8_percent_encode(name, NOT_IN_SEGMENTS).to_string()
}

fn read_page<T>(
    text: &str,
    read: impl Fn(&RawValue) -> Result<T, serde_json::Error>,
) -> Result<ListPage<T>, Error> {
    let list: RawList<'_> = serde_json::from_str(text).map_err(Error::Decode)?;
    let items = list.items.unwrap_or_default().into_iter();
    Ok(ListPage {
        items: items
            .map(read)
            .collect::<Result<_, _>>()
            .map_err(Error::Decode)?,
        resource_version: list.metadata.resource_version,
        next: list.metadata.r#continue.filter(|token| !token.is_empty()),
    })
}

/// The metadata of an item, without the managed fields, which are nested as deep as its object.
fn read_metadata(item: &RawValue) -> Result<Value, serde_json::Error> {
    let item: MetadataItem<'_> = serde_json::from_str(item.get())?;
    let fields = item.metadata.into_iter();
    let metadata = fields
        .filter(|(name, _)| name != "managedFields")
        .map(|(name, value)| Ok((name, serde_json::from_str(value.get())?)))
        .collect::<Result<Map<_, _>, serde_json::Error>>()?;
    let mut object = Map::new();
    object.insert("metadata".to_owned(), Value::Object(metadata));
    Ok(Value::Object(object))
}

/// The first state of a replayed watch.
fn first_state(text: &str) -> Result<&str, RequestFailure> {
    // Nothing is replayed while the API server's cache is behind: the caller tries again.
    let line = text.lines().next().ok_or(RequestFailure::TimedOut)?;
    let event: ReplayedEvent<'_> =
        serde_json::from_str(line).map_err(|error| unreadable(&error))?;
    if event.r#type == "ERROR" {
        let status =
            serde_json::from_str(event.object.get()).map_err(|error| unreadable(&error))?;
        return Err(status_failure(&status));
    }
    Ok(event.object.get())
}

/// The object in a list of the objects of one name.
fn only_item(list: &str) -> Result<&str, RequestFailure> {
    let list: NamedObjects<'_> = serde_json::from_str(list).map_err(|error| unreadable(&error))?;
    let item = list.items.first().ok_or_else(|| RequestFailure::Status {
        code: 404,
        message: "no object of this name is listed".to_owned(),
        retry_after: None,
    })?;
    Ok(item.get())
}

fn unreadable(error: &serde_json::Error) -> RequestFailure {
    RequestFailure::Unreadable {
        message: error.to_string(),
        cut: error.is_eof(),
    }
}

/// A name as the value of a field selector.
fn selector_value(name: &str) -> String {
    let mut value = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '\\' | ',' | '=') {
            value.push('\\');
        }
        value.push(character);
    }
    value
}

fn decode<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(Error::Decode)
}

fn build(error: kube::core::request::Error) -> Error {
    Error::Request(Box::new(kube::Error::BuildRequest(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_however_deep_its_object_is_nested() {
        let (open, close) = ("[".repeat(9_000), "]".repeat(9_000));
        let page = format!(
            r#"{{"items": [{{"metadata": {{"name": "deep", "managedFields": {open}{close},
                "finalizers": ["ours"]}}}}, {{"metadata": {{"name": "flat"}}}}]}}"#
        );
        let page = read_page(&page, read_metadata).expect("it is read");
        let names: Vec<_> = page
            .items
            .iter()
            .map(|it| &it["metadata"]["name"])
            .collect();
        assert_eq!(names, ["deep", "flat"]);
        assert_eq!(page.items[0]["metadata"]["finalizers"][0], "ours");
    }

    #[test]
    fn the_server_cannot_ask_for_a_pause_of_years() {
        let busy = |seconds: u32| {
            let status = serde_json::json!({
                "code": 429, "message": "later", "details": {"retryAfterSeconds": seconds},
            });
            let status = serde_json::from_value(status).expect("a status");
            Error::from_status(status).retry_after()
        };
        assert_eq!(busy(7), Some(Duration::from_secs(7)));
        assert_eq!(busy(u32::MAX), Some(LONGEST_RETRY_AFTER));
        assert_eq!(busy(0), None);
    }
}
