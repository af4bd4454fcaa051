//! The pictures of the book are drawn from their texts: boxes on a grid, and arrows between them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use super::generated_page::compare;
use super::repository;

/// The size of a box, and of a cell of the grid.
const BOX: (i32, i32) = (230, 56);
const CELL: (i32, i32) = (390, 116);
const MARGIN: i32 = 30;

/// Colours for a light background, and for a dark one.
const STYLE: &str = "\
.card{fill:#fafafa}.box{fill:#fff;stroke:#335;stroke-width:1.5}\
.line{stroke:#335;stroke-width:1.5;fill:none}.head{fill:#335}\
text{font:14px sans-serif;fill:#112;text-anchor:middle}.small{font-size:12px;fill:#445}\
.label{font-size:12px;fill:#223;stroke:#fafafa;stroke-width:5;paint-order:stroke}\
@media(prefers-color-scheme:dark){.card{fill:#1b1e27}.box{fill:#262a36;stroke:#9ab}\
.line{stroke:#9ab}.head{fill:#9ab}text{fill:#eef}.small{fill:#bcd}\
.label{fill:#dde;stroke:#1b1e27}}";

/// A point of the picture.
type Point = (i32, i32);

/// What a text describes.
#[derive(Debug, Default)]
struct Picture {
    title: String,
    boxes: BTreeMap<String, (Point, String)>,
    arrows: Vec<(String, String, String)>,
}

impl Picture {
    fn parse(text: &str) -> Self {
        let mut picture = Self::default();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').expect("a line has a word and more");
            let parts = |count| {
                rest.splitn(count, ' ')
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            match word {
                "title" => rest.clone_into(&mut picture.title),
                "box" => {
                    let [id, column, row, label] = &parts(4)[..] else {
                        panic!("a box has an id, a column, a row and a text: {line}");
                    };
                    let number = |text: &str| text.parse::<i32>().expect("a number of the grid");
                    let place = (number(column), number(row));
                    picture.boxes.insert(id.clone(), (place, label.clone()));
                }
                "arrow" => {
                    let [from, to, label] = &parts(3)[..] else {
                        panic!("an arrow has two boxes and a text: {line}");
                    };
                    picture
                        .arrows
                        .push((from.clone(), to.clone(), label.clone()));
                }
                other => panic!("no such line: {other}"),
            }
        }
        picture
    }

    /// The middle of a box.
    fn middle(&self, id: &str) -> Point {
        let ((column, row), _) = self.boxes.get(id).unwrap_or_else(|| panic!("no box {id}"));
        let x = MARGIN + column * CELL.0 + BOX.0 / 2;
        (x, MARGIN + 34 + row * CELL.1 + BOX.1 / 2)
    }

    fn draw(&self) -> String {
        let places = self.boxes.values().map(|(place, _)| *place);
        let (columns, rows) = places.fold((0, 0), |(x, y), it| (x.max(it.0), y.max(it.1)));
        let width = 2 * MARGIN + columns * CELL.0 + BOX.0;
        let height = 2 * MARGIN + 34 + rows * CELL.1 + BOX.1;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"card\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n\
             <text x=\"{middle}\" y=\"{MARGIN}\">{title}</text>\n",
            title = escaped(&self.title),
            middle = width / 2,
        );
        for (from, to, label) in &self.arrows {
            let has_return = self.arrows.iter().any(|(a, b, _)| a == to && b == from);
            let ends = (self.middle(from), self.middle(to));
            svg.push_str(&arrow(ends, label, has_return));
        }
        for (id, (_, label)) in &self.boxes {
            svg.push_str(&labelled_box(self.middle(id), label));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn labelled_box((x, y): Point, label: &str) -> String {
    let (left, top) = (x - BOX.0 / 2, y - BOX.1 / 2);
    let mut svg = format!(
        "<rect class=\"box\" x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        BOX.0, BOX.1
    );
    let lines = match label.split_once("; ") {
        Some((name, about)) => vec![(name, "", -4), (about, " class=\"small\"", 15)],
        None => vec![(label, "", 5)],
    };
    for (text, class, shift) in lines {
        let _ = writeln!(
            svg,
            "<text{class} x=\"{x}\" y=\"{}\">{}</text>",
            y + shift,
            escaped(text)
        );
    }
    svg
}

/// An arrow from the edge of one box to the edge of another one.
fn arrow((from, to): (Point, Point), label: &str, has_return: bool) -> String {
    let (dx, dy) = ((to.0 - from.0).signum(), (to.1 - from.1).signum());
    let is_level = dy == 0;
    // Two arrows between the same boxes are drawn beside each other.
    let aside = if has_return { 46 * (dx + dy) } else { 0 };
    let (start, end) = if is_level {
        let (start, end) = (from.0 + dx * BOX.0 / 2, to.0 - dx * BOX.0 / 2);
        ((start, from.1 + aside / 3), (end, to.1 + aside / 3))
    } else if dx == 0 {
        let (start, end) = (from.1 + dy * BOX.1 / 2, to.1 - dy * BOX.1 / 2);
        ((from.0 + aside, start), (to.0 + aside, end))
    } else {
        let start = (from.0 + dx * BOX.0 / 2, from.1);
        (start, (to.0 - dx * BOX.0 / 2, to.1 - dy * BOX.1 / 4))
    };
    // The end of a line is a triangle that points along it.
    let (x, y) = (f64::from(end.0 - start.0), f64::from(end.1 - start.1));
    let length = x.hypot(y);
    let (x, y) = (x / length, y / length);
    let corner = |along: f64, across: f64| {
        let left = f64::from(end.0) - x * along - y * across;
        let top = f64::from(end.1) - y * along + x * across;
        format!("{left:.1},{top:.1}")
    };
    let mut svg = format!(
        "<path class=\"line\" d=\"M{},{} L{}\"/>\n<path class=\"head\" d=\"M{} L{} L{} Z\"/>\n",
        start.0,
        start.1,
        corner(6.0, 0.0),
        corner(0.0, 0.0),
        corner(9.0, 5.0),
        corner(9.0, -5.0)
    );
    let middle = (i32::midpoint(start.0, end.0), i32::midpoint(start.1, end.1));
    let top = if is_level { middle.1 - 8 } else { middle.1 + 4 };
    for (number, line) in wrapped(label, 22).iter().rev().enumerate() {
        let up = 14 * i32::try_from(number).expect("a label is short");
        let _ = writeln!(
            svg,
            "<text class=\"label\" x=\"{}\" y=\"{}\">{}</text>",
            middle.0,
            top - up,
            escaped(line)
        );
    }
    svg
}

/// The words of a text in lines of about this length.
fn wrapped(text: &str, length: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.len() + word.len() < length {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[test]
fn the_pictures_are_drawn_from_their_texts() {
    let folder = repository().join("docs/pictures");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder can be listed").path();
        if path.extension().is_some_and(|it| it == "txt") {
            let text = fs::read_to_string(&path).expect("a text is readable");
            let name = path
                .file_stem()
                .expect("a file has a name")
                .to_string_lossy();
            compare(
                &format!("pictures/{name}.svg"),
                &Picture::parse(&text).draw(),
            );
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} pictures");
}

#[test]
fn an_arrow_to_no_box_is_refused() {
    let picture = Picture::parse("title a\nbox b 0 0 c\narrow b d e\n");
    std::panic::catch_unwind(|| picture.draw()).expect_err("there is no box d");
}
