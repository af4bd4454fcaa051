//! A response body that ends with an error in the middle of a line.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame};

use super::{BodyError, ConnectionCut, ProxyBody};

enum Truncated {
    Passing {
        body: ProxyBody,
        lines_left: usize,
    },
    /// The last part is with hyper, which would drop it with the connection if the error came at
    /// once: while the body has nothing to give, hyper writes what it has.
    Flushing,
    Cutting,
    Over,
}

/// Passes this many lines and half of the next one, and then fails.
pub(super) fn after_lines(body: ProxyBody, lines: usize) -> ProxyBody {
    Truncated::Passing {
        body,
        lines_left: lines,
    }
    .boxed_unsync()
}

/// The part of `data` to pass on, and whether the body ends after it.
fn split(data: &Bytes, lines_left: &mut usize) -> (Bytes, bool) {
    let mut start = 0;
    while *lines_left > 0 {
        match data[start..].iter().position(|&byte| byte == b'\n') {
            None => return (data.clone(), false),
            Some(end) => {
                start += end + 1;
                *lines_left -= 1;
            }
        }
    }
    let rest = &data[start..];
    if rest.is_empty() {
        return (data.clone(), false);
    }
    let line = rest
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len());
    (data.slice(..start + line / 2), true)
}

impl hyper::body::Body for Truncated {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Over => Poll::Ready(None),
            Self::Flushing => {
                *self = Self::Cutting;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Cutting => {
                *self = Self::Over;
                Poll::Ready(Some(Err(Box::new(ConnectionCut))))
            }
            Self::Passing { body, lines_left } => {
                let Some(frame) = ready!(Pin::new(body).poll_frame(context)?) else {
                    *self = Self::Over;
                    return Poll::Ready(None);
                };
                let Ok(data) = frame.into_data() else {
                    *self = Self::Over;
                    return Poll::Ready(None);
                };
                let (passed, cut) = split(&data, lines_left);
                if cut {
                    *self = Self::Flushing;
                }
                Poll::Ready(Some(Ok(Frame::data(passed))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_after_the_last_complete_one_is_cut_in_its_middle() {
        let mut left = 1;
        let (passed, cut) = split(&Bytes::from("first\nsecond\n"), &mut left);
        assert_eq!((&passed[..], cut), (&b"first\nsec"[..], true));
    }

    #[test]
    fn complete_lines_pass_even_in_several_frames() {
        let mut left = 1;
        assert_eq!(
            split(&Bytes::from("fir"), &mut left),
            (Bytes::from("fir"), false)
        );
        assert_eq!(
            split(&Bytes::from("st\n"), &mut left),
            (Bytes::from("st\n"), false)
        );
        assert_eq!(
            split(&Bytes::from("next\n"), &mut left),
            (Bytes::from("ne"), true)
        );
    }
}
