//! Server-sent events: the number of the newest report, whenever it has changed.
//!
//! The page requests what it shows when the number changes. Nothing runs while no page is open.

use std::convert::Infallible;
use std::time::Duration;

use futures::stream;
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame};
use tokio::time::{Instant, sleep};

use super::journal::PageJournal;
use super::response::{self, PageBody};

/// How often the number is read while a page is open.
const POLL: Duration = Duration::from_millis(250);

/// The longest time without a message, so that a closed connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A stream of events, as long as the connection lasts.
pub(super) fn events(journal: PageJournal) -> Response<PageBody> {
    let frames = stream::unfold((journal, 0), |(journal, last)| async move {
        let (text, last) = next_message(&journal, last).await;
        let frame = Frame::data(Bytes::from(text));
        Some((Ok::<_, Infallible>(frame), (journal, last)))
    });
    let body = StreamBody::new(frames).boxed_unsync();
    response::with_headers(StatusCode::OK, "text/event-stream", body)
}

/// Waits for a change, at most as long as a connection may be silent.
async fn next_message(journal: &PageJournal, last: u64) -> (String, u64) {
    let begun = Instant::now();
    loop {
        let revision = journal.revision();
        if revision != last {
            return (format!("event: change\ndata: {revision}\n\n"), revision);
        }
        if begun.elapsed() >= KEEP_ALIVE {
            return (": still here\n\n".to_owned(), last);
        }
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::journal::entry::JournalSubject;

    #[tokio::test(start_paused = true)]
    async fn a_message_follows_each_change_and_each_silence() {
        let journal = PageJournal::keeping();
        let (first, revision) = next_message(&journal, 0).await;
        assert_eq!(first, format!("event: change\ndata: {revision}\n\n"));
        let (silent, same) = next_message(&journal, revision).await;
        assert_eq!((&*silent, same), (": still here\n\n", revision));
        journal.handling_begun(&JournalSubject {
            api_version: "v1",
            kind: "Pod",
            namespace: None,
            name: "one",
            uid: "u",
        });
        let (_, newer) = next_message(&journal, revision).await;
        assert!(newer > revision);
    }
}
