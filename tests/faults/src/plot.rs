//! A plot of samples as SVG: one panel for each measure, readable on light and on dark pages.

use std::fmt::Write as _;

use crate::samples::LoadSample;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 76.0;
const PANEL: f64 = 92.0;
const TITLE: f64 = 22.0;
const GAP: f64 = 14.0;

/// The number of points of a line; of more samples, the greatest of each group is drawn.
const POINTS: usize = 240;

/// Colours that are readable on white and on black.
const STYLE: &str = "<style>\
text{font:12px sans-serif;fill:#57606a}.t{font-weight:600}\
.g{stroke:#8c959f;stroke-opacity:.35}\
.a{fill:none;stroke:#2f81f7;stroke-width:1.4}.b{fill:none;stroke:#d4742c;stroke-width:1.2}\
.ka{fill:#2f81f7}.kb{fill:#d4742c}\
@media (prefers-color-scheme:dark){text{fill:#9ea7b3}}\
</style>";

/// A line of a panel.
struct PlotLine {
    name: &'static str,
    value: fn(&LoadSample) -> f64,
}

/// One panel: a title with its unit, and one or two lines.
struct PlotPanel {
    unit: &'static str,
    lines: &'static [PlotLine],
}

const PANELS: [PlotPanel; 4] = [
    PlotPanel {
        unit: "MiB",
        lines: &[PlotLine {
            name: "resident memory",
            value: |it| it.footprint.memory as f64 / 1024.0,
        }],
    },
    PlotPanel {
        unit: "",
        lines: &[
            PlotLine {
                name: "file descriptors",
                value: |it| it.footprint.descriptors as f64,
            },
            PlotLine {
                name: "tasks",
                value: |it| it.footprint.tasks as f64,
            },
        ],
    },
    PlotPanel {
        unit: "ms",
        lines: &[
            PlotLine {
                name: "from edit to handled, median",
                value: |it| it.latency_median as f64,
            },
            PlotLine {
                name: "longest",
                value: |it| it.latency_max as f64,
            },
        ],
    },
    PlotPanel {
        unit: "s",
        lines: &[PlotLine {
            name: "age of the oldest edit that is not handled",
            value: |it| it.lag as f64 / 1000.0,
        }],
    },
];

/// The plot of these samples.
pub(crate) fn of(samples: &[LoadSample]) -> String {
    let height = PANELS.len() as f64 * (TITLE + PANEL + GAP) + 24.0;
    let end = samples.last().map_or(1.0, |it| it.seconds.max(1.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"The operator over time\">{STYLE}"
    );
    let mut top = 0.0;
    for panel in &PANELS {
        draw(&mut svg, panel, samples, top, end);
        top += TITLE + PANEL + GAP;
    }
    for quarter in 0..=4 {
        let x = LEFT + (WIDTH - LEFT - 8.0) * f64::from(quarter) / 4.0;
        let anchor = if quarter == 4 { "end" } else { "middle" };
        let minutes = end * f64::from(quarter) / 240.0;
        let y = top + 8.0;
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<text x=\"{x:.0}\" y=\"{y:.0}\" text-anchor=\"{anchor}\">{minutes:.1} min</text>"
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, panel: &PlotPanel, samples: &[LoadSample], top: f64, end: f64) {
    let values = |line: &PlotLine| grouped(samples, line.value);
    let highest = panel.lines.iter().flat_map(values).map(|(_, value)| value);
    let limit = rounded_up(highest.fold(0.0, f64::max));
    let (base, width) = (top + TITLE + PANEL, WIDTH - LEFT - 8.0);
    let mut x = LEFT;
    for (line, key) in panel.lines.iter().zip(["ka", "kb"]) {
        let (dot, y) = (x + 4.0, top + 11.0);
        let _ = write!(
            svg,
            "<circle class=\"{key}\" cx=\"{dot:.0}\" cy=\"{y:.0}\" r=\"4\"/>\
             <text class=\"t\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            x + 13.0,
            top + 15.0,
            line.name
        );
        x += 40.0 + line.name.len() as f64 * 7.0;
    }
    for (value, y) in [(limit, top + TITLE), (0.0, base)] {
        let (unit, right) = (panel.unit, LEFT + width);
        let _ = write!(
            svg,
            "<path class=\"g\" d=\"M{LEFT} {y:.1}H{right:.1}\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{value} {unit}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    for (line, class) in panel.lines.iter().zip(["a", "b"]) {
        let mut path = String::new();
        for (seconds, value) in values(line) {
            let (x, y) = (LEFT + width * seconds / end, base - PANEL * value / limit);
            let step = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{step}{x:.1} {y:.1}");
        }
        let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
    }
}

/// The times and values of a line, the greatest value of each group of samples.
fn grouped(samples: &[LoadSample], value: fn(&LoadSample) -> f64) -> Vec<(f64, f64)> {
    let group = samples.len().div_ceil(POINTS).max(1);
    let groups = samples.chunks(group).filter_map(|samples| {
        let seconds = samples.last()?.seconds;
        Some((seconds, samples.iter().map(value).fold(0.0, f64::max)))
    });
    groups.collect()
}

/// The next number of 1, 2 or 5 times a power of ten.
fn rounded_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_round_and_not_below_the_values() {
        let limits = [0.0, 0.4, 1.0, 3.0, 21.0, 99.0, 101.0].map(rounded_up);
        assert_eq!(limits, [1.0, 1.0, 1.0, 5.0, 50.0, 100.0, 200.0]);
    }

    #[test]
    fn a_plot_has_all_panels_and_few_points() {
        let samples: Vec<LoadSample> = (0..2000)
            .map(|number| LoadSample {
                seconds: f64::from(number) * 5.0,
                lag: 1,
                ..LoadSample::default()
            })
            .collect();
        let svg = of(&samples);
        assert_eq!(svg.matches("class=\"a\"").count(), PANELS.len());
        assert!(svg.len() < 40_000, "{}", svg.len());
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(of(&[]).ends_with("</svg>\n"));
    }
}
