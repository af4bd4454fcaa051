//! Reads the API server's audit log: every request with its user, verb, object and status.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fmt, fs, io};

use serde::Deserialize;

/// The audit log of one control plane.
#[derive(Clone, Debug)]
pub struct AuditLog {
    path: PathBuf,
}

/// One request as the API server answered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditedRequest {
    /// The authenticated user.
    pub user: String,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The plural of the resource, with its subresource after a slash; none for other paths.
    pub resource: Option<String>,
    /// The API group, empty for the core group.
    pub group: String,
    /// The namespace, if the request was within one.
    pub namespace: Option<String>,
    /// The object, if the request was about one.
    pub name: Option<String>,
    /// Path and query.
    pub uri: String,
    /// The HTTP status of the response.
    pub code: u16,
}

/// The number of requests per resource and verb.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RequestCounts {
    counts: BTreeMap<(String, String), usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    #[serde(rename = "auditID")]
    audit_id: String,
    verb: String,
    user: AuditedUser,
    #[serde(default)]
    user_agent: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct AuditedUser {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    resource: Option<String>,
    subresource: Option<String>,
    #[serde(default)]
    api_group: String,
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

// === impl AuditLog ===

impl AuditLog {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// All requests so far, in the order of their responses; a watch counts when it starts.
    ///
    /// The API server logs a request just after it has sent the response, so the latest request
    /// may be missing; callers wait until it is there.
    pub fn requests(&self) -> io::Result<Vec<AuditedRequest>> {
        Ok(parse(&fs::read_to_string(&self.path)?))
    }
}

fn parse(log: &str) -> Vec<AuditedRequest> {
    let mut position_of = BTreeMap::new();
    let mut requests: Vec<AuditedRequest> = Vec::new();
    for line in log.lines() {
        // The last line may be only half written.
        let Ok(event) = serde_json::from_str::<AuditEvent>(line) else {
            continue;
        };
        let id = event.audit_id.clone();
        let request = AuditedRequest::from(event);
        match position_of.get(&id) {
            // A watch that ended is the same request as the one that started.
            Some(&position) => requests[position] = request,
            None => {
                position_of.insert(id, requests.len());
                requests.push(request);
            }
        }
    }
    requests
}

impl From<AuditEvent> for AuditedRequest {
    fn from(event: AuditEvent) -> Self {
        let (resource, group, namespace, name) = match event.object_ref {
            None => (None, String::new(), None, None),
            Some(it) => {
                let resource = it.resource.map(|plural| match it.subresource {
                    Some(subresource) => format!("{plural}/{subresource}"),
                    None => plural,
                });
                (resource, it.api_group, it.namespace, it.name)
            }
        };
        Self {
            user: event.user.username,
            user_agent: event.user_agent,
            verb: event.verb,
            resource,
            group,
            namespace,
            name,
            uri: event.request_uri,
            code: event.response_status.map_or(0, |status| status.code),
        }
    }
}

// === impl RequestCounts ===

impl RequestCounts {
    /// The number of requests with `verb` on `resource`, a plural such as `pods` or `pods/status`.
    pub fn of(&self, resource: &str, verb: &str) -> usize {
        self.counts
            .get(&(resource.to_owned(), verb.to_owned()))
            .copied()
            .unwrap_or_default()
    }

    /// The number of all requests.
    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }
}

impl<'a> FromIterator<&'a AuditedRequest> for RequestCounts {
    fn from_iter<I: IntoIterator<Item = &'a AuditedRequest>>(requests: I) -> Self {
        let mut counts = BTreeMap::new();
        for request in requests {
            // Discovery and the like have a path but no resource.
            let resource = request.resource.as_ref().unwrap_or(&request.uri).clone();
            *counts.entry((resource, request.verb.clone())).or_default() += 1;
        }
        Self { counts }
    }
}

impl fmt::Debug for RequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .counts
            .iter()
            .map(|((resource, verb), n)| (format!("{verb} {resource}"), n));
        f.debug_map().entries(shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = concat!(
        r#"{"auditID":"1","stage":"ResponseComplete","verb":"create","user":{"username":"ann"},"#,
        r#""requestURI":"/api/v1/namespaces/n/pods","objectRef":{"resource":"pods","namespace":"n"},"#,
        r#""responseStatus":{"code":201}}"#,
        "\n",
        r#"{"auditID":"2","stage":"ResponseStarted","verb":"watch","user":{"username":"ann"},"#,
        r#""requestURI":"/w","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}"#,
        "\n",
        r#"{"auditID":"2","stage":"ResponseComplete","verb":"watch","user":{"username":"ann"},"#,
        r#""requestURI":"/w","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}"#,
        "\n",
        r#"{"auditID":"3","verb":"patch","user":{"username":"ann"},"requestURI":"/s","#,
        r#""objectRef":{"resource":"pods","subresource":"status"},"responseStatus":{"code":409}}"#,
        "\n",
        r#"{"auditID":"4","verb":"pat"#,
    );

    #[test]
    fn a_watch_counts_once_and_a_partial_line_is_skipped() {
        let requests = parse(LOG);

        let counts: RequestCounts = requests.iter().collect();

        assert_eq!(counts.total(), 3, "{counts:?}");
        assert_eq!(counts.of("pods", "watch"), 1);
        assert_eq!(counts.of("pods/status", "patch"), 1);
        assert_eq!(requests[2].code, 409);
    }
}
