//! Removes our finalizer from an object that cannot be parsed, so that it can be deleted.

use serde::Deserialize;
use serde_json::json;

use super::apply::WriteRejected;
use super::object_writer::{DecodedAnswer, ObjectRequest, ObjectWriter, WriteFailure};
use crate::client::requests::{PatchBody, PatchTarget};

/// The fields that a release needs. All others are skipped, however deep they are nested: the
/// managed fields in the metadata are as deep as the object.
#[derive(Deserialize)]
struct ReleasableObject {
    metadata: ReleasableMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReleasableMetadata {
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<String>,
    #[serde(default)]
    finalizers: Vec<String>,
}

/// Removes the finalizer if the object is being deleted; returns whether it did.
pub(crate) async fn release(
    writer: &ObjectWriter<'_>,
    finalizer: &str,
) -> Result<bool, WriteRejected> {
    let mut tried = None;
    loop {
        let read = |text: &str| read(text, &writer.key.uid);
        let mut object = match writer.request(ObjectRequest::Get, read).await {
            Ok(object) => object,
            Err(failure) => return failure.into_result().map(|_| false),
        };
        let before = object.finalizers.len();
        object.finalizers.retain(|it| it != finalizer);
        if object.deletion_timestamp.is_none() || object.finalizers.len() == before {
            return Ok(false);
        }
        let version = object.resource_version;
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": object.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/metadata/finalizers", "value": object.finalizers},
        ]);
        let body = PatchBody::Json(&patch);
        let request = ObjectRequest::Patch(PatchTarget::Body, &body);
        match writer.request(request, |_| Ok(Some(()))).await {
            Ok(()) | Err(WriteFailure::Gone) => return Ok(true),
            Err(WriteFailure::Conflict | WriteFailure::WriteRejected(_))
                if tried.as_ref() != Some(&version) =>
            {
                tried = Some(version);
            }
            Err(failure) => return failure.into_result().map(|_| false),
        }
    }
}

/// The object; none if it is another one of the same name.
fn read(text: &str, uid: &str) -> DecodedAnswer<ReleasableMetadata> {
    let object: ReleasableObject = serde_json::from_str(text)?;
    Ok((object.metadata.uid == uid).then_some(object.metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_any_depth_are_read() {
        let (open, close) = ("[".repeat(9_000), "]".repeat(9_000));
        let text = format!(
            r#"{{"metadata": {{"uid": "u", "resourceVersion": "5", "finalizers": ["ours"],
                "managedFields": {open}{close}}}, "spec": {open}{close}}}"#
        );
        let object = read(&text, "u")
            .expect("it is read")
            .expect("it is this one");
        assert_eq!(object.finalizers, ["ours"]);
        assert!(read(&text, "another").expect("it is read").is_none());
    }
}
