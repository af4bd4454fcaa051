//! Suggests the known name that is nearest to a mistyped one.

/// The candidate that differs least from `name`, if any is near enough.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// [`nearest`] as a sentence for a diagnostic.
#[must_use]
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

fn distance(name: &str, candidate: &str) -> usize {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    strsim::damerau_levenshtein(&plain(name), &plain(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_finds_the_nearest_candidate() {
        let known = ["retries", "timeout", "backoff", "initial_delay"];
        assert_eq!(nearest("retires", known), Some("retries"));
        assert_eq!(nearest("initialDelay", known), Some("initial_delay"));
        assert_eq!(nearest("Timeout", known), Some("timeout"));
        assert_eq!(nearest("interval", known), None);
    }
}
