//! The state of an object whose turn is due later.

use serde_json::Value;

use super::batch::{ByteBudget, ReservedBytes};

/// The state of an object whose turn is due later.
///
/// In an outage all objects may wait for a retry, for hours. A parsed object takes several times
/// the memory of its text, so that it is never kept, and the texts have a limit together.
#[derive(Debug)]
pub(crate) enum SleepingState {
    Text {
        text: Box<str>,
        _reserved: ReservedBytes,
    },
    /// The text exceeds the budget: the next call reads the object instead.
    Unread,
}

// === impl SleepingState ===

impl SleepingState {
    /// Keeps the text of an object if the budget allows it.
    pub(crate) fn new(object: &Value, budget: &ByteBudget) -> Self {
        let text = object.to_string();
        match budget.reserve_for_sleep(text.len()) {
            Some(_reserved) => Self::Text {
                text: text.into(),
                _reserved,
            },
            None => Self::Unread,
        }
    }

    /// Parses the object; none if it is to be read instead.
    pub(crate) fn parse(&self) -> Option<Value> {
        match self {
            Self::Text { text, .. } => serde_json::from_str(text).ok(),
            Self::Unread => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sleeping_objects_take_half_of_the_budget_and_give_it_back() {
        let object = json!({"metadata": {"name": "one"}});
        let bytes = object.to_string().len();
        let budget = ByteBudget::new(4 * bytes);
        let sleep = || SleepingState::new(&object, &budget);
        let first = sleep();
        let second = sleep();
        assert_eq!(budget.taken(), 2 * bytes);
        assert!(matches!(sleep(), SleepingState::Unread));
        assert_eq!(budget.taken(), 2 * bytes);
        assert_eq!(first.parse(), Some(object.clone()));
        drop(first);
        assert_eq!(budget.taken(), bytes);
        assert!(matches!(sleep(), SleepingState::Text { .. }));
        drop(second);
        assert_eq!(budget.taken(), 0);
        assert_eq!(SleepingState::Unread.parse(), None);
    }
}
