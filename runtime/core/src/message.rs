//! Messages and other texts, cut to the number of bytes that the place where they are stored accepts.

/// The longest message of a Kubernetes event in bytes; records of handlers have the same limit.
pub const LONGEST_MESSAGE: usize = 1024;

const ELLIPSIS: &str = "...";

/// Cuts the middle out of a message that is too long, as Kopf does; never within a character.
#[must_use]
pub fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let kept = LONGEST_MESSAGE - ELLIPSIS.len();
    let head = beginning(message, kept.div_ceil(2));
    let mut after = message.len() - kept / 2..;
    let tail = after.find_map(|at| message.get(at..)).unwrap_or_default();
    format!("{head}{ELLIPSIS}{tail}")
}

/// The beginning of a text with at most this many bytes; never a part of a character.
#[must_use]
pub fn beginning(text: &str, bytes: usize) -> &str {
    let mut ends = (0..=bytes.min(text.len())).rev();
    ends.find_map(|at| text.get(..at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_message_loses_its_middle() {
        let message = format!("{}{}", "a".repeat(1000), "z".repeat(1000));
        let short = shortened(&message);
        assert_eq!(short.len(), LONGEST_MESSAGE);
        assert!(short.starts_with("aaa") && short.contains("a...z") && short.ends_with("zzz"));
        assert_eq!(shortened("short"), "short");
    }

    proptest! {
        #[test]
        fn messages_fit_and_ascii_is_cut_as_kopf_cuts_it(message in "[a-zж日🦀]{0,1200}") {
            let short = shortened(&message);
            prop_assert!(short.len() <= LONGEST_MESSAGE);
            if message.len() <= LONGEST_MESSAGE {
                prop_assert_eq!(short, message);
            } else {
                prop_assert!(short.len() > LONGEST_MESSAGE - 8);
                if message.is_ascii() {
                    prop_assert_eq!(short.find(ELLIPSIS), Some(511));
                }
            }
        }
    }
}
