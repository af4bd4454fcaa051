//! The names that every Rust module has without an import.

/// The paths of the prelude of the 2024 edition, each ending in its name.
const PRELUDE: &[&[&str]] = &[
    &["std", "borrow", "ToOwned"],
    &["std", "boxed", "Box"],
    &["std", "clone", "Clone"],
    &["std", "cmp", "Eq"],
    &["std", "cmp", "Ord"],
    &["std", "cmp", "PartialEq"],
    &["std", "cmp", "PartialOrd"],
    &["std", "convert", "AsMut"],
    &["std", "convert", "AsRef"],
    &["std", "convert", "From"],
    &["std", "convert", "Into"],
    &["std", "convert", "TryFrom"],
    &["std", "convert", "TryInto"],
    &["std", "default", "Default"],
    &["std", "future", "Future"],
    &["std", "future", "IntoFuture"],
    &["std", "iter", "DoubleEndedIterator"],
    &["std", "iter", "ExactSizeIterator"],
    &["std", "iter", "Extend"],
    &["std", "iter", "FromIterator"],
    &["std", "iter", "IntoIterator"],
    &["std", "iter", "Iterator"],
    &["std", "marker", "Copy"],
    &["std", "marker", "Send"],
    &["std", "marker", "Sized"],
    &["std", "marker", "Sync"],
    &["std", "marker", "Unpin"],
    &["std", "mem", "drop"],
    &["std", "ops", "AsyncFn"],
    &["std", "ops", "AsyncFnMut"],
    &["std", "ops", "AsyncFnOnce"],
    &["std", "ops", "Drop"],
    &["std", "ops", "Fn"],
    &["std", "ops", "FnMut"],
    &["std", "ops", "FnOnce"],
    &["std", "option", "Option"],
    &["std", "option", "Option", "None"],
    &["std", "option", "Option", "Some"],
    &["std", "result", "Result"],
    &["std", "result", "Result", "Err"],
    &["std", "result", "Result", "Ok"],
    &["std", "string", "String"],
    &["std", "string", "ToString"],
    &["std", "vec", "Vec"],
];

/// Whether the prelude has exactly this path.
pub(super) fn contains<S: AsRef<str>>(path: &[S]) -> bool {
    let names = || path.iter().map(AsRef::as_ref);
    PRELUDE
        .iter()
        .any(|known| known.iter().copied().eq(names()))
}

/// Whether every module has this name without an import.
#[must_use]
pub fn is_in_prelude(name: &str) -> bool {
    find(name).is_some()
}

/// The path of a name of the prelude.
pub(super) fn find(name: &str) -> Option<&'static [&'static str]> {
    PRELUDE
        .iter()
        .copied()
        .find(|known| known.last() == Some(&name))
}
