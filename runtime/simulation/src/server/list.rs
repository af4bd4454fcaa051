//! Lists, in pages that show one revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::ApiServer;
use super::answer::{AnswerBody, ApiAnswer, Failure, ListType, ObjectList};
use super::kind::KindId;
use super::request::{ListOptions, ObjectForm};
use super::selector::{InvalidSelector, ObjectSelector};
use super::store::{ObjectPath, StoredObject};

/// The place at which a list goes on.
struct PageStart {
    /// The revision of the first page; none after that has expired.
    revision: Option<u64>,
    after: ObjectPath,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn list(
        &self,
        kind: KindId,
        namespace: Option<&Arc<str>>,
        options: &ListOptions,
    ) -> Result<ApiAnswer, Failure> {
        let selector = ObjectSelector::parse(options.labels.as_deref(), options.fields.as_deref())
            .map_err(|InvalidSelector(message)| Failure::bad_request(message))?;
        let start = match &options.continue_token {
            Some(token) => Some(self.page_start(token)?),
            None => None,
        };
        let current = self.store.revision();
        let revision = start.as_ref().and_then(|it| it.revision).unwrap_or(current);
        let snapshot: BTreeMap<ObjectPath, StoredObject>;
        let found: Vec<(&ObjectPath, &StoredObject)> = if revision == current {
            self.store.objects(kind).collect()
        } else {
            snapshot = self.store.snapshot(kind, revision);
            snapshot.iter().collect()
        };
        let after = start.map(|it| it.after);
        let mut found = found
            .into_iter()
            .filter(|(path, _)| after.as_ref().is_none_or(|after| *path > after))
            .filter(|(path, _)| namespace.is_none_or(|it| path.namespace == *it))
            .filter(|(_, stored)| selector.matches(&stored.object));
        let limit = options.limit.filter(|it| *it > 0);
        let mut page: Vec<(&ObjectPath, &StoredObject)> = match limit {
            Some(limit) => found.by_ref().take(limit as usize).collect(),
            None => found.by_ref().collect(),
        };
        let remaining = found.count();
        let token = (remaining > 0)
            .then(|| page.last().map(|(path, _)| token(revision, path)))
            .flatten();
        let list = ObjectList {
            items: page
                .drain(..)
                .map(|(_, stored)| in_form(&stored.object, options.form))
                .collect(),
            resource_version: revision.to_string(),
            continue_token: token,
            remaining: (remaining > 0 && selector.is_empty()).then_some(remaining),
            type_meta: ListType::of(&self.definition_arc(kind), options.form),
        };
        Ok(ApiAnswer {
            code: 200,
            body: AnswerBody::List(Box::new(list)),
        })
    }

    fn page_start(&self, token: &str) -> Result<PageStart, Failure> {
        let start = read_token(token).ok_or_else(|| {
            Failure::bad_request("invalid continue token: continue key is not valid")
        })?;
        match start.revision {
            Some(revision) if revision < self.store.compacted() => Err(Failure {
                continue_token: Some(token_without_revision(&start.after)),
                ..Failure::new(
                    410,
                    "Expired",
                    "The provided continue parameter is too old to display a consistent list \
                     result. You can start a new list without the continue parameter, or use the \
                     continue token in this response to retrieve the remainder of the results. \
                     Continuing with the provided token results in an inconsistent list - objects \
                     that were created, modified, or deleted between the time the first chunk was \
                     returned and now may show up in the list.",
                )
            }),
            _ => Ok(start),
        }
    }
}

/// The object as a list or a watch shows it.
pub(super) fn in_form(object: &Arc<Value>, form: ObjectForm) -> Arc<Value> {
    match form {
        ObjectForm::Whole => Arc::clone(object),
        ObjectForm::Metadata => Arc::new(json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": object["metadata"],
        })),
    }
}

fn token(revision: u64, last: &ObjectPath) -> String {
    format!("{revision}:{}/{}", last.namespace, last.name)
}

fn token_without_revision(last: &ObjectPath) -> String {
    format!(":{}/{}", last.namespace, last.name)
}

fn read_token(token: &str) -> Option<PageStart> {
    let (revision, path) = token.split_once(':')?;
    let (namespace, name) = path.split_once('/')?;
    let revision = match revision {
        "" => None,
        revision => Some(revision.parse().ok()?),
    };
    Some(PageStart {
        revision,
        after: ObjectPath {
            namespace: namespace.into(),
            name: name.into(),
        },
    })
}
