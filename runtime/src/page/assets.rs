//! The files of the page, which are part of the program.

pub(super) const DOCUMENT: &str = include_str!("page.html");
pub(super) const SCRIPT: &str = include_str!("page.js");
pub(super) const STYLES: &str = include_str!("page.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_uses_nothing_from_elsewhere() {
        for file in [DOCUMENT, SCRIPT, STYLES] {
            for word in ["http:", "https:", "//cdn", "@import", "eval(", "innerHTML"] {
                assert!(!file.contains(word), "{word}");
            }
        }
        // The policy of the responses allows no code and no styles in the document itself.
        for word in ["<script>", "style=", "<style", "onclick"] {
            assert!(!DOCUMENT.contains(word), "{word}");
        }
    }

    #[test]
    fn the_page_is_small() {
        let bytes = DOCUMENT.len() + SCRIPT.len() + STYLES.len();
        assert!(bytes < 40_000, "{bytes} bytes");
    }
}
