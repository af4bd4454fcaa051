//! Requests of the simulated API server as HTTP, for the real one.

use http::{Method, Request, header};
use kopf_simulation::server::{
    ApiRequest, Endpoint, KindDefinition, ListOptions, ObjectForm, SimulatedPatch, Verb,
    WatchOptions,
};
use kopf_tests::TestFailure;
use kube::client::Body;
use serde_json::{Value, json};

/// The HTTP request for a request.
pub(crate) fn request(
    definition: &KindDefinition,
    request: &ApiRequest,
) -> Result<Request<Body>, TestFailure> {
    let collection = collection(definition, request.namespace.as_deref());
    let object = |name: &str| format!("{collection}/{name}");
    let endpoint = |name: &str, endpoint: Endpoint| match endpoint {
        Endpoint::Object => object(name),
        Endpoint::Status => format!("{}/status", object(name)),
    };
    match &request.verb {
        Verb::Get { name } => build(Method::GET, &object(name), None),
        Verb::List(options) => list(&collection, options),
        Verb::Create { body } => {
            let body = Some(("application/json", body));
            build(Method::POST, &collection, body)
        }
        Verb::Update {
            name,
            endpoint: part,
            body,
        } => {
            let body = Some(("application/json", body));
            build(Method::PUT, &endpoint(name, *part), body)
        }
        Verb::Patch {
            name,
            endpoint: part,
            patch,
        } => {
            let body = match patch {
                SimulatedPatch::Merge(body) => ("application/merge-patch+json", body),
                SimulatedPatch::Json(body) => ("application/json-patch+json", body),
            };
            build(Method::PATCH, &endpoint(name, *part), Some(body))
        }
        Verb::Delete {
            name,
            preconditions,
        } => {
            let mut conditions = json!({});
            if let Some(uid) = &preconditions.uid {
                conditions["uid"] = json!(uid);
            }
            if let Some(version) = &preconditions.resource_version {
                conditions["resourceVersion"] = json!(version);
            }
            let body = json!({"kind": "DeleteOptions", "apiVersion": "v1",
                "propagationPolicy": "Background", "preconditions": conditions});
            let body = Some(("application/json", &body));
            build(Method::DELETE, &object(name), body)
        }
    }
}

/// The HTTP request for a watch.
pub(crate) fn watch(
    definition: &KindDefinition,
    namespace: Option<&str>,
    options: &WatchOptions,
) -> Result<Request<Body>, TestFailure> {
    let mut query = vec![("watch", "true".to_owned())];
    let version = options.resource_version.clone();
    let timeout = options.timeout.map(|it| it.as_secs().to_string());
    for (name, value) in [
        ("labelSelector", options.labels.clone()),
        ("fieldSelector", options.fields.clone()),
        ("resourceVersion", version),
        ("timeoutSeconds", timeout),
    ] {
        query.extend(value.map(|value| (name, value)));
    }
    if options.bookmarks {
        query.push(("allowWatchBookmarks", "true".to_owned()));
    }
    let uri = with_query(&collection(definition, namespace), &query);
    get(&uri, options.form)
}

fn list(collection: &str, options: &ListOptions) -> Result<Request<Body>, TestFailure> {
    let mut query = Vec::new();
    for (name, value) in [
        ("labelSelector", options.labels.clone()),
        ("fieldSelector", options.fields.clone()),
        ("limit", options.limit.map(|it| it.to_string())),
        ("continue", options.continue_token.clone()),
    ] {
        query.extend(value.map(|value| (name, value)));
    }
    get(&with_query(collection, &query), options.form)
}

fn get(uri: &str, form: ObjectForm) -> Result<Request<Body>, TestFailure> {
    let mut request = build(Method::GET, uri, None)?;
    if form == ObjectForm::Metadata {
        let noun = if uri.contains("watch=true") {
            ""
        } else {
            "List"
        };
        let accept = format!("application/json;as=PartialObjectMetadata{noun};g=meta.k8s.io;v=v1");
        let accept = accept.parse()?;
        request.headers_mut().insert(header::ACCEPT, accept);
    }
    Ok(request)
}

fn build(
    method: Method,
    uri: &str,
    body: Option<(&str, &Value)>,
) -> Result<Request<Body>, TestFailure> {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::ACCEPT, "application/json");
    let mut content = Vec::new();
    if let Some((content_type, body)) = body {
        request = request.header(header::CONTENT_TYPE, content_type);
        content = serde_json::to_vec(body)?;
    }
    Ok(request.body(Body::from(content))?)
}

fn collection(definition: &KindDefinition, namespace: Option<&str>) -> String {
    let KindDefinition {
        group,
        version,
        plural,
        ..
    } = definition;
    let root = if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}

fn with_query(path: &str, query: &[(&str, String)]) -> String {
    let query: Vec<String> = query
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    format!("{path}?{}", query.join("&"))
}

fn escaped(value: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    value.bytes().map(escape).collect()
}
