//! The path and the query of a request to the page.

use http::Method;
use percent_encoding::percent_decode_str;

use super::journal::objects::{ObjectQuery, ShownState};

/// The most objects on one page.
const LARGEST_PAGE: usize = 200;

const DEFAULT_PAGE: usize = 50;

/// The longest text to search for: names of objects are shorter.
const LONGEST_SEARCH: usize = 320;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageRoute {
    Document,
    Script,
    Styles,
    Overview,
    Objects(ObjectQuery),
    Object(String),
    Calls,
    Stream,
}

/// What a request asks to do with an object, or the source that it needs for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditRoute {
    pub(super) uid: String,
    pub(super) action: String,
}

impl EditRoute {
    /// The action that reads what is to be edited.
    pub(super) const SOURCE: &'static str = "source";

    /// The route of a path; none if it is no path of an edit.
    pub(super) fn of(method: &Method, path: &str) -> Option<Self> {
        let (uid, action) = path.strip_prefix("/api/objects/")?.split_once('/')?;
        let is_read = action == Self::SOURCE;
        let fits = *method == if is_read { Method::GET } else { Method::POST };
        Some(Self {
            uid: decoded(uid).filter(|_| fits)?,
            action: action.to_owned(),
        })
    }
}

impl PageRoute {
    /// The route of a path; none if there is nothing.
    pub(super) fn of(path: &str, query: Option<&str>) -> Option<Self> {
        match path {
            "/" => Some(Self::Document),
            "/page.js" => Some(Self::Script),
            "/page.css" => Some(Self::Styles),
            "/api/overview" => Some(Self::Overview),
            "/api/objects" => Some(Self::Objects(object_query(query.unwrap_or_default()))),
            "/api/calls" => Some(Self::Calls),
            "/api/stream" => Some(Self::Stream),
            _ => {
                let uid = path.strip_prefix("/api/objects/")?;
                Some(Self::Object(decoded(uid).filter(|_| !uid.contains('/'))?))
            }
        }
    }
}

/// What cannot be read counts as not given.
fn object_query(query: &str) -> ObjectQuery {
    let mut asked = ObjectQuery {
        size: DEFAULT_PAGE,
        ..ObjectQuery::default()
    };
    for (key, value) in query.split('&').filter_map(|it| it.split_once('=')) {
        let Some(value) = decoded(&value.replace('+', " ")).filter(|it| !it.is_empty()) else {
            continue;
        };
        match key {
            "kind" => asked.kind = Some(value),
            "state" => asked.state = ShownState::from_word(&value),
            "search" if value.len() <= LONGEST_SEARCH => {
                value.trim().to_lowercase().clone_into(&mut asked.search);
            }
            "page" => asked.page = value.parse().unwrap_or(0),
            "size" => asked.size = value.parse().unwrap_or(DEFAULT_PAGE).clamp(1, LARGEST_PAGE),
            _ => {}
        }
    }
    asked
}

fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(query: &str) -> ObjectQuery {
        match PageRoute::of("/api/objects", Some(query)) {
            Some(PageRoute::Objects(query)) => query,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_query_has_filters_and_a_page() {
        let query = objects("kind=Widget.example.com&state=failed&search=Web%2F+1&page=3&size=20");
        let expected = ObjectQuery {
            kind: Some("Widget.example.com".to_owned()),
            state: Some(ShownState::Failed),
            search: "web/ 1".to_owned(),
            page: 3,
            size: 20,
        };
        assert_eq!(query, expected);
    }

    #[test]
    fn what_cannot_be_read_is_not_asked_for_and_sizes_are_limited() {
        let plain = ObjectQuery {
            size: DEFAULT_PAGE,
            ..ObjectQuery::default()
        };
        assert_eq!(
            objects("state=other&page=-1&kind=&search=%ff&x&&=&size=x"),
            plain
        );
        assert_eq!(objects("size=1000000").size, LARGEST_PAGE);
        assert_eq!(objects("size=0").size, 1);
    }

    #[test]
    fn unknown_paths_have_no_route() {
        for path in ["/api", "/api/objects/%ff", "/page", "//", "/metrics"] {
            assert_eq!(PageRoute::of(path, None), None, "{path}");
        }
        let object = PageRoute::Object("u-1".to_owned());
        assert_eq!(PageRoute::of("/api/objects/u-1", None), Some(object));
    }
}
