//! Finds the commands in a Markdown page.

/// What a page puts above a block that cannot run here, with its reason.
const MARK: &str = "<!-- not run: ";

/// The contents of each fenced block that is marked `sh`, but for those that are marked as not run;
/// other languages show output or code.
pub(crate) fn shell_blocks(markdown: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    let mut is_skipped = false;
    let mut before = "";
    for line in markdown.lines() {
        match (&mut open, line) {
            (None, "```sh") => {
                is_skipped = before.starts_with(MARK);
                open = Some(String::new());
            }
            (Some(_), "```") => blocks.extend(open.take().filter(|_| !is_skipped)),
            (Some(block), line) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
        before = line;
    }
    blocks
}

/// How many blocks of commands have no mark.
pub(crate) fn unmarked(markdown: &str) -> usize {
    let lines = markdown.lines();
    let pairs = std::iter::once("").chain(lines.clone()).zip(lines);
    let unmarked = pairs.filter(|(before, line)| *line == "```sh" && !before.starts_with(MARK));
    unmarked.count()
}

/// The reasons of the blocks that are not run.
pub(crate) fn marks(markdown: &str) -> Vec<&str> {
    let marks = markdown.lines().filter_map(|line| line.strip_prefix(MARK));
    marks.map(|mark| mark.trim_end_matches(" -->")).collect()
}
