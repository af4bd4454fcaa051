//! Annotation keys made of handler ids, in both of Kopf's forms.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::object::{
    ObjectView,
    essence::{MARKER_NAME, is_kopf_prefix},
    patch::ObjectPatch,
};

/// The form of keys: their prefix, and whether the old form is written, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyForm {
    /// The prefix without its slash.
    pub prefix: String,
    /// Whether the first form is written beside the second; Kopf does by default.
    pub v1: bool,
}

const MAX_NAME: usize = 63;
const INHERITED_SUFFIX: &str = "-ofDRS";

// === impl KeyForm ===

impl KeyForm {
    /// Both forms under a prefix.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            v1: true,
        }
    }

    /// All keys for an id on this object, in the order of reading.
    #[must_use]
    pub fn keys(&self, id: &str, view: ObjectView<'_>) -> Vec<String> {
        let name = if view.inherits_annotations() {
            Cow::Owned(format!("{id}{INHERITED_SUFFIX}"))
        } else {
            Cow::Borrowed(id)
        };
        if self.is_plain(&name) {
            return vec![[&*self.prefix, "/", &*name].concat()];
        }
        let mut keys = vec![self.v2(&name)];
        if self.v1 {
            keys.push(self.v1(&name));
        }
        keys.dedup();
        keys
    }

    /// The annotations of this object under the keys for an id, in the order of the keys.
    pub fn read<'a>(&self, id: &str, view: ObjectView<'a>) -> impl Iterator<Item = &'a str> {
        // Most new objects have no annotations, and making keys costs time.
        let known = view.annotations().filter(|known| !known.is_empty());
        let keys = known.map(|_| self.keys(id, view));
        let keys = keys.into_iter().flatten();
        keys.filter_map(move |key| view.annotation(&key))
    }

    /// The second form: only the name is limited.
    #[must_use]
    pub fn v2(&self, id: &str) -> String {
        let suffix = if id.chars().count() > MAX_NAME {
            suffix(id)
        } else {
            String::new()
        };
        let name = cut(&safe(id), MAX_NAME - suffix.len());
        format!("{}/{name}{suffix}", self.prefix)
    }

    /// The first form: prefix and name together are limited.
    #[must_use]
    pub fn v1(&self, id: &str) -> String {
        let safe = safe(id);
        let prefix = self.prefix.chars().count() + 1;
        let length = safe.chars().count();
        let suffix = if length + prefix <= MAX_NAME {
            String::new()
        } else {
            suffix(&safe)
        };
        let taken = prefix + suffix.len();
        let keep = match MAX_NAME.checked_sub(taken) {
            Some(length) => length,
            None => length.saturating_sub(taken - MAX_NAME),
        };
        format!("{}/{}{suffix}", self.prefix, cut(&safe, keep))
    }

    /// Whether both forms of the key are just the prefix and the id. That is the common case, and
    /// keys are made many times for each object.
    fn is_plain(&self, id: &str) -> bool {
        self.prefix.len() + 1 + id.len() <= MAX_NAME && !id.contains(['/', '<', '>'])
    }

    /// Whether a key belongs to this prefix.
    #[must_use]
    pub fn owns(&self, key: &str) -> bool {
        key.split_once('/')
            .is_some_and(|(prefix, _)| prefix == self.prefix)
    }

    /// The name in a key of this prefix: the id, with other letters and maybe shortened.
    #[must_use]
    pub fn name_in<'k>(&self, key: &'k str, view: ObjectView<'_>) -> &'k str {
        let name = key.split_once('/').map_or(key, |(_, name)| name);
        let inherits = view.inherits_annotations();
        let stripped = inherits
            .then(|| name.strip_suffix(INHERITED_SUFFIX))
            .flatten();
        stripped.unwrap_or(name)
    }

    /// Whether two names in keys may be both forms of one long id: the shorter one ends in a digest,
    /// and begins as the longer one does.
    #[must_use]
    pub fn may_be_same(&self, one: &str, other: &str) -> bool {
        let (short, long) = if one.len() <= other.len() {
            (one, other)
        } else {
            (other, one)
        };
        let beginning = short.rsplit_once('-').map(|(beginning, _)| beginning);
        let is_long = self.prefix.len() + 1 + long.len() > MAX_NAME;
        is_long && beginning.is_some_and(|it| !it.is_empty() && long.starts_with(it))
    }

    /// Marks the prefix, so that other operators do not take our annotations for changes.
    ///
    /// Kopf forgets this for prefixes such as `kopf.dev`, which it does not recognise itself.
    pub fn add_marker(&self, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        let key = format!("{}/{MARKER_NAME}", self.prefix);
        if !is_kopf_prefix(&self.prefix) && view.annotation(&key).is_none() {
            patch.set_annotation(&key, "yes");
        }
    }
}

fn safe(id: &str) -> String {
    id.replace('/', ".").replace(['<', '>'], "_")
}

fn cut(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

fn suffix(key: &str) -> String {
    let hash = blake2b_simd::Params::new()
        .hash_length(4)
        .hash(key.as_bytes());
    let text = STANDARD
        .encode(hash.as_bytes())
        .replace('+', "-")
        .replace('/', ".");
    format!("-{text}")
        .trim_end_matches(['=', '-', '.'])
        .to_owned()
}

#[cfg(test)]
mod tests;
