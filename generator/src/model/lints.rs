//! The lints of clippy that schemas trigger, and their types cannot avoid.

use super::identifier::TypeName;

/// Whether clippy would suggest a constant of `std::f64::consts` for a number.
#[must_use]
pub fn resembles_constant(value: f64) -> bool {
    use std::f64::consts::*;
    const CONSTANTS: [f64; 19] = [
        E,
        FRAC_1_PI,
        FRAC_1_SQRT_2,
        FRAC_2_PI,
        FRAC_2_SQRT_PI,
        FRAC_PI_2,
        FRAC_PI_3,
        FRAC_PI_4,
        FRAC_PI_6,
        FRAC_PI_8,
        LN_2,
        LN_10,
        LOG10_2,
        LOG10_E,
        LOG2_10,
        LOG2_E,
        PI,
        SQRT_2,
        TAU,
    ];
    const NEAR: f64 = 0.01;
    CONSTANTS
        .iter()
        .any(|constant| (value.abs() - constant).abs() < NEAR)
}

/// Whether clippy would object that all variants of an enum repeat a word.
#[must_use]
pub fn repeats_a_word(name: &TypeName, variants: &[&TypeName]) -> bool {
    if variants.len() < 3 {
        return false;
    }
    let split = |name: &TypeName| camel_words(name.as_str());
    let enum_words = split(name);
    let lists: Vec<Vec<String>> = variants.iter().map(|name| split(name)).collect();
    let stutter = lists.iter().any(|words| {
        words.len() > enum_words.len()
            && (words.starts_with(&enum_words) || words.ends_with(&enum_words))
    });
    let same = |word: fn(&Vec<String>) -> Option<&String>| {
        let first = lists.first().and_then(word);
        lists
            .iter()
            .all(|words| words.len() > 1 && word(words) == first)
    };
    let common = same(|words| words.first()) || same(|words| words.last());
    stutter || common
}

/// The words of a type name as clippy splits it: at every capital.
fn camel_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in name.chars() {
        match words.last_mut() {
            Some(word) if !c.is_uppercase() => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    words
}
