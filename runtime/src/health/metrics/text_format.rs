//! The text format of Prometheus, version 0.0.4.
//!
//! It is written by hand: `prometheus-client` encodes OpenMetrics only, where the `TYPE` of a
//! counter has another name and a text ends with `# EOF`, and the `prometheus` crate would copy all
//! counters into its own data model for each scrape.

use std::fmt::Write as _;
use std::time::Duration;

use super::instrument::{Counter, Histogram};

/// The metrics that are encoded so far.
#[derive(Debug, Default)]
pub(super) struct MetricsText {
    text: String,
}

/// Encodes the samples of one metric.
pub(super) struct MetricFamily<'a> {
    text: &'a mut String,
    name: &'static str,
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

type LabelValues<'a> = [(&'static str, &'a str)];

// === impl MetricsText ===

impl MetricsText {
    /// Begins a metric; its samples must follow before the next one.
    pub(super) fn family(
        &mut self,
        name: &'static str,
        kind: MetricType,
        help: &str,
    ) -> MetricFamily<'_> {
        let kind = match kind {
            MetricType::Counter => "counter",
            MetricType::Gauge => "gauge",
            MetricType::Histogram => "histogram",
        };
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        self.text.push_str(help);
        self.text.push_str("\n# TYPE ");
        self.text.push_str(name);
        self.text.push(' ');
        self.text.push_str(kind);
        self.text.push('\n');
        MetricFamily {
            text: &mut self.text,
            name,
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

// === impl MetricFamily ===

impl MetricFamily<'_> {
    pub(super) fn sample(&mut self, labels: &LabelValues<'_>, value: i64) {
        self.line("", labels, None, value);
    }

    pub(super) fn count(&mut self, labels: &LabelValues<'_>, counter: &Counter) {
        self.line("", labels, None, counter.get());
    }

    pub(super) fn seconds(&mut self, labels: &LabelValues<'_>, duration: Duration) {
        self.line("", labels, None, duration.as_secs_f64());
    }

    pub(super) fn histogram(&mut self, labels: &LabelValues<'_>, histogram: &Histogram) {
        let distribution = histogram.distribution();
        for (bound, count) in &distribution.cumulative {
            let bound = bound.as_secs_f64().to_string();
            self.line("_bucket", labels, Some(&bound), count);
        }
        self.line("_bucket", labels, Some("+Inf"), distribution.count);
        self.line("_sum", labels, None, distribution.sum.as_secs_f64());
        self.line("_count", labels, None, distribution.count);
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &LabelValues<'_>,
        bound: Option<&str>,
        value: impl std::fmt::Display,
    ) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let labels = labels.iter().copied().chain(bound.map(|it| ("le", it)));
        let mut mark = '{';
        for (name, value) in labels {
            self.text.push(mark);
            self.text.push_str(name);
            self.text.push_str("=\"");
            self.text.extend(value.chars().flat_map(escaped));
            self.text.push('"');
            mark = ',';
        }
        if mark == ',' {
            self.text.push('}');
        }
        writeln!(self.text, " {value}").expect("writing to a String does not fail");
    }
}

/// A character as it is escaped in the value of a label.
fn escaped(character: char) -> impl Iterator<Item = char> {
    let (mark, character) = match character {
        '\\' | '"' => (Some('\\'), character),
        '\n' => (Some('\\'), 'n'),
        other => (None, other),
    };
    mark.into_iter().chain([character])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_help_its_type_and_its_samples() {
        let mut text = MetricsText::default();
        let mut family = text.family("a_total", MetricType::Counter, "All of it.");
        family.sample(&[], 1);
        family.sample(&[("b", "x\"y\\z\nw"), ("c", "")], -2);
        assert_eq!(
            text.into_text(),
            "# HELP a_total All of it.\n# TYPE a_total counter\na_total 1\n\
             a_total{b=\"x\\\"y\\\\z\\nw\",c=\"\"} -2\n"
        );
    }

    #[test]
    fn a_histogram_has_cumulative_buckets() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_millis(3));
        let mut text = MetricsText::default();
        text.family("t_seconds", MetricType::Histogram, "Time.")
            .histogram(&[("a", "b")], &histogram);
        let text = text.into_text();
        for line in [
            "t_seconds_bucket{a=\"b\",le=\"0.001\"} 0\n",
            "t_seconds_bucket{a=\"b\",le=\"0.005\"} 1\n",
            "t_seconds_bucket{a=\"b\",le=\"300\"} 1\n",
            "t_seconds_bucket{a=\"b\",le=\"+Inf\"} 1\n",
            "t_seconds_sum{a=\"b\"} 0.003\n",
            "t_seconds_count{a=\"b\"} 1\n",
        ] {
            assert!(text.contains(line), "{text} lacks {line}");
        }
    }
}
