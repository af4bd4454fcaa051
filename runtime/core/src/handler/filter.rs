//! Filters: conditions on labels, annotations, fields, and the object as a whole.

use std::{any::Any, fmt, sync::Arc};

use serde_json::Value;

use crate::{
    cause::{Cause, Subject},
    object::{
        diff::{OldValue, same},
        path::FieldPath,
    },
};

/// A condition on the value of a label or an annotation, none if it is absent.
pub type TextPredicate = Arc<dyn Fn(Option<&str>, &Subject<'_>) -> bool + Send + Sync>;

/// A condition on the value of a field, none if it is absent.
pub type ValuePredicate = Arc<dyn Fn(Option<&Value>, &Subject<'_>) -> bool + Send + Sync>;

/// A condition on the object as a whole.
pub type SubjectPredicate = Arc<dyn Fn(&Subject<'_>) -> bool + Send + Sync>;

/// Conditions combined by logical operators.
#[derive(Clone, Debug, PartialEq)]
pub enum Combined<T> {
    /// The condition itself.
    One(T),
    /// All must hold; true for none.
    All(Vec<Combined<T>>),
    /// At least one must hold; false for none.
    Any(Vec<Combined<T>>),
    /// None may hold.
    NoneOf(Vec<Combined<T>>),
    /// It must not hold.
    Not(Box<Combined<T>>),
}

/// A test of a label or an annotation.
#[derive(Clone)]
pub enum TextTest {
    /// It has this value.
    Equals(String),
    /// It is present, maybe empty.
    Present,
    /// It is absent.
    Absent,
    /// The predicate returns true.
    Matches(TextPredicate),
}

/// A test of the value of a field.
#[derive(Clone)]
pub enum ValueTest {
    /// It is this value.
    Equals(Value),
    /// It is present.
    Present,
    /// It is absent, or null.
    Absent,
    /// The predicate returns true.
    Matches(ValuePredicate),
}

/// A test of a field.
#[derive(Clone, Debug)]
pub enum FieldTest {
    /// It is present before or after the change.
    Any,
    /// It passes the test before or after the change.
    Value(Combined<ValueTest>),
    /// It passes the tests before and after the change.
    Transition {
        /// Before.
        old: Option<Combined<ValueTest>>,
        /// After.
        new: Option<Combined<ValueTest>>,
    },
}

/// A condition on one field.
#[derive(Clone, Debug)]
pub struct FieldFilter {
    /// The path of the field.
    pub path: FieldPath,
    /// The test of its value.
    pub test: FieldTest,
}

/// A test of the object as a whole.
#[derive(Clone)]
pub struct WhenTest(pub SubjectPredicate);

/// All conditions of a handler; all must hold.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    /// By label.
    pub labels: Vec<(String, Combined<TextTest>)>,
    /// By annotation.
    pub annotations: Vec<(String, Combined<TextTest>)>,
    /// By one field.
    pub field: Option<FieldFilter>,
    /// By anything.
    pub when: Option<Combined<WhenTest>>,
    /// The runtime's own data about the handler, for predicates.
    pub data: Option<Arc<dyn Any + Send + Sync>>,
}

/// A value to be tested; an unknown old value passes every test that some value passes.
#[derive(Clone, Copy)]
enum CandidateValue<'a> {
    Value(Option<&'a Value>),
    Unknown,
}

// === impl Combined ===

impl<T> Combined<T> {
    /// Evaluates the combination with `test` for each condition that matters.
    pub fn eval(&self, test: &mut impl FnMut(&T) -> bool) -> bool {
        match self {
            Self::One(condition) => test(condition),
            Self::All(all) => all.iter().all(|part| part.eval(test)),
            Self::Any(any) => any.iter().any(|part| part.eval(test)),
            Self::NoneOf(none) => !none.iter().any(|part| part.eval(test)),
            Self::Not(part) => !part.eval(test),
        }
    }

    /// All conditions of the combination.
    #[must_use]
    pub fn conditions(&self) -> Vec<&T> {
        match self {
            Self::One(condition) => vec![condition],
            Self::All(parts) | Self::Any(parts) | Self::NoneOf(parts) => {
                parts.iter().flat_map(Self::conditions).collect()
            }
            Self::Not(part) => part.conditions(),
        }
    }

    /// The same combination of other conditions; none if one of them is missing.
    pub fn try_map<U>(&self, map: &mut impl FnMut(&T) -> Option<U>) -> Option<Combined<U>> {
        let mut all = |parts: &[Self]| {
            let mapped: Vec<_> = parts.iter().filter_map(|part| part.try_map(map)).collect();
            (mapped.len() == parts.len()).then_some(mapped)
        };
        Some(match self {
            Self::All(parts) => Combined::All(all(parts)?),
            Self::Any(parts) => Combined::Any(all(parts)?),
            Self::NoneOf(parts) => Combined::NoneOf(all(parts)?),
            Self::Not(part) => Combined::Not(Box::new(part.try_map(map)?)),
            Self::One(condition) => Combined::One(map(condition)?),
        })
    }
}

impl<T> From<T> for Combined<T> {
    fn from(condition: T) -> Self {
        Self::One(condition)
    }
}

impl<T> std::ops::Not for Combined<T> {
    type Output = Self;

    fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}

// === impl TextTest ===

impl TextTest {
    fn holds(&self, value: Option<&str>, subject: &Subject<'_>) -> bool {
        match self {
            Self::Equals(expected) => value == Some(expected),
            Self::Present => value.is_some(),
            Self::Absent => value.is_none(),
            Self::Matches(predicate) => predicate(value, subject),
        }
    }
}

impl fmt::Debug for TextTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(value) => f.debug_tuple("Equals").field(value).finish(),
            Self::Present => f.write_str("Present"),
            Self::Absent => f.write_str("Absent"),
            Self::Matches(_) => f.write_str("Matches(…)"),
        }
    }
}

// === impl WhenTest ===

impl WhenTest {
    /// A test by a function.
    pub fn new(condition: impl Fn(&Subject<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(condition))
    }
}

// === impl ValueTest ===

impl ValueTest {
    fn holds(&self, candidate: CandidateValue<'_>, subject: &Subject<'_>) -> bool {
        match (self, candidate) {
            (Self::Equals(expected), CandidateValue::Value(value)) => same(Some(expected), value),
            (Self::Present, CandidateValue::Value(value)) => value.is_some(),
            (Self::Absent, CandidateValue::Value(value)) => value.is_none(),
            (Self::Matches(predicate), CandidateValue::Value(value)) => predicate(value, subject),
            (Self::Present | Self::Equals(_) | Self::Matches(_), CandidateValue::Unknown) => true,
            (Self::Absent, CandidateValue::Unknown) => false,
        }
    }
}

impl fmt::Debug for ValueTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(value) => f.debug_tuple("Equals").field(value).finish(),
            Self::Present => f.write_str("Present"),
            Self::Absent => f.write_str("Absent"),
            Self::Matches(_) => f.write_str("Matches(…)"),
        }
    }
}

// === impl FieldFilter ===

impl FieldFilter {
    /// A field that must only be present.
    #[must_use]
    pub fn any(path: FieldPath) -> Self {
        Self {
            path,
            test: FieldTest::Any,
        }
    }

    fn prematch(&self, subject: &Subject<'_>) -> bool {
        let present = Combined::One(ValueTest::Present);
        let test = match &self.test {
            FieldTest::Value(test) => test,
            FieldTest::Any | FieldTest::Transition { .. } => &present,
        };
        let holds = |candidate| test.eval(&mut |test| test.holds(candidate, subject));
        match subject.cause {
            Some(cause) => {
                let old = cause.old.value_at(&self.path, cause.new);
                holds(CandidateValue::Value(
                    self.path.resolve(cause.new.as_value()),
                )) || holds(CandidateValue::of(&old))
            }
            None => holds(CandidateValue::Value(
                self.path.resolve(subject.body.body()),
            )),
        }
    }

    fn changed(&self, cause: &Cause<'_>, subject: &Subject<'_>, must_differ: bool) -> bool {
        if must_differ && cause.old.same_at(&self.path, cause.new) {
            return false;
        }
        let FieldTest::Transition { old, new } = &self.test else {
            return true;
        };
        let before = cause.old.value_at(&self.path, cause.new);
        let after = CandidateValue::Value(self.path.resolve(cause.new.as_value()));
        let passes = |test: &Option<Combined<ValueTest>>, candidate| {
            test.as_ref()
                .is_none_or(|test| test.eval(&mut |test| test.holds(candidate, subject)))
        };
        passes(old, CandidateValue::of(&before)) && passes(new, after)
    }
}

impl<'a> CandidateValue<'a> {
    fn of(old: &'a OldValue) -> Self {
        match old {
            OldValue::Absent => Self::Value(None),
            OldValue::Known(value) => Self::Value(Some(value)),
            OldValue::Unknown => Self::Unknown,
        }
    }
}

// === impl WhenTest ===

impl fmt::Debug for WhenTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WhenTest(…)")
    }
}

// === impl Filters ===

impl Filters {
    /// Whether there are no conditions at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self {
            labels,
            annotations,
            field,
            when,
            data: _,
        } = self;
        labels.is_empty() && annotations.is_empty() && field.is_none() && when.is_none()
    }

    /// Whether all conditions hold, except those on the change of the field.
    #[must_use]
    pub fn prematch(&self, subject: &Subject<'_>) -> bool {
        let subject = &self.with_data(subject);
        self.texts_match(subject)
            && self
                .field
                .as_ref()
                .is_none_or(|field| field.prematch(subject))
            && self.when_holds(subject)
    }

    /// Whether all conditions hold; `must_differ` requires that the field changed.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>, must_differ: bool) -> bool {
        let subject = &self.with_data(subject);
        self.texts_match(subject)
            && self.field.as_ref().is_none_or(|field| {
                field.prematch(subject)
                    && subject
                        .cause
                        .is_none_or(|cause| field.changed(cause, subject, must_differ))
            })
            && self.when_holds(subject)
    }

    fn with_data<'a>(&'a self, subject: &Subject<'a>) -> Subject<'a> {
        match &self.data {
            Some(data) => subject.with_handler(&**data),
            None => *subject,
        }
    }

    fn texts_match(&self, subject: &Subject<'_>) -> bool {
        let body = subject.body;
        self.labels
            .iter()
            .all(|(key, test)| test.eval(&mut |test| test.holds(body.label(key), subject)))
            && self
                .annotations
                .iter()
                .all(|(key, test)| test.eval(&mut |test| test.holds(body.annotation(key), subject)))
    }

    fn when_holds(&self, subject: &Subject<'_>) -> bool {
        self.when
            .as_ref()
            .is_none_or(|when| when.eval(&mut |test| (test.0)(subject)))
    }
}

#[cfg(test)]
mod tests;
