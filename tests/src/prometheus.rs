//! Parses Prometheus' text format, and rejects what `promtool` reports as a problem.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed page of metrics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrometheusText {
    families: BTreeMap<String, ParsedFamily>,
}

/// A parsed metric family: all samples of one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedFamily {
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    /// The text of its `HELP` line.
    pub help: String,
    /// Labels with values; a histogram's have their suffix as `__name__`.
    samples: BTreeMap<SampleLabels, f64>,
}

type SampleLabels = BTreeMap<String, String>;

/// A violation of the format.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct InvalidText {
    line: usize,
    problem: String,
}

/// The names of the samples of a histogram.
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

impl PrometheusText {
    /// Parses a page.
    ///
    /// # Errors
    /// If the page breaks a rule of the format or a convention of Prometheus.
    pub fn parse(text: &str) -> Result<Self, InvalidText> {
        let mut metrics = Self::default();
        let mut current = String::new();
        let mut line = 0;
        let mut parse = || {
            check(text.ends_with('\n'), "the last line has no end")?;
            for content in text.lines() {
                line += 1;
                if let Some(rest) = content.strip_prefix("# HELP ") {
                    let (name, help) = rest.split_once(' ').ok_or("a HELP without a text")?;
                    check(is_name(name), "a name that is none")?;
                    check(!metrics.families.contains_key(name), "a family twice")?;
                    current = name.to_owned();
                    let family = metrics.families.entry(current.clone()).or_default();
                    family.help = help.to_owned();
                } else if let Some(rest) = content.strip_prefix("# TYPE ") {
                    let (name, kind) = rest.split_once(' ').ok_or("a TYPE without a type")?;
                    check(name == current, "TYPE and HELP do not belong together")?;
                    let known = ["counter", "gauge", "histogram"].contains(&kind);
                    check(known, "an unknown type")?;
                    let counts = name.ends_with("_total");
                    check(
                        (kind == "counter") == counts,
                        "only counters end with _total",
                    )?;
                    metrics.family(&current)?.kind = kind.to_owned();
                } else {
                    metrics.family(&current)?.sample(&current, content)?;
                }
            }
            for (name, family) in &metrics.families {
                family.check(name)?;
            }
            Ok(())
        };
        let parsed: Result<(), String> = parse();
        match parsed {
            Ok(()) => Ok(metrics),
            Err(problem) => Err(InvalidText { line, problem }),
        }
    }

    /// All families by name.
    pub fn families(&self) -> &BTreeMap<String, ParsedFamily> {
        &self.families
    }

    /// The value of a sample; histograms have `_count`, `_sum` and `_bucket`.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let (family, suffix) = match self.families.get(name) {
            Some(family) => (family, None),
            None => SUFFIXES.iter().find_map(|suffix| {
                let family = name.strip_suffix(suffix)?;
                Some((self.families.get(family)?, Some(*suffix)))
            })?,
        };
        let labels = labels.iter().copied();
        let labels = labels.chain(suffix.map(|suffix| ("__name__", suffix)));
        let labels: SampleLabels = labels.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        family.samples.get(&labels).copied()
    }

    fn family(&mut self, name: &str) -> Result<&mut ParsedFamily, String> {
        let family = self.families.get_mut(name);
        family.ok_or_else(|| "a sample before its family".to_owned())
    }
}

impl ParsedFamily {
    /// The names of the labels; all samples have the same.
    pub fn labels(&self) -> BTreeSet<String> {
        let first = self.samples.keys().next();
        let names = first.into_iter().flat_map(BTreeMap::keys);
        let internal = ["__name__", "le"];
        names
            .filter(|name| !internal.contains(&name.as_str()))
            .cloned()
            .collect()
    }

    fn sample(&mut self, family: &str, line: &str) -> Result<(), String> {
        let end = line.find(['{', ' ']).ok_or("a sample without a value")?;
        let (name, rest) = line.split_at(end);
        let mut labels = SampleLabels::new();
        match name.strip_prefix(family) {
            Some("") => check(self.kind != "histogram", "a histogram without a suffix")?,
            Some(suffix) if self.kind == "histogram" && SUFFIXES.contains(&suffix) => {
                labels.insert("__name__".to_owned(), suffix.to_owned());
            }
            _ => return Err(format!("{name} does not belong to {family}")),
        }
        let value = match rest.strip_prefix('{') {
            Some(inside) => read_labels(inside, &mut labels)?,
            None => rest,
        };
        let value = value.strip_prefix(' ').ok_or("no blank before the value")?;
        let value: f64 = value.parse().map_err(|_| format!("{value} is no number"))?;
        let fresh = self.samples.insert(labels, value).is_none();
        check(fresh, "the same series twice")
    }

    fn check(&self, name: &str) -> Result<(), String> {
        check(!self.kind.is_empty(), "a family without a type")?;
        check(!self.help.is_empty(), "a family without a help")?;
        let names = self.labels();
        for labels in self.samples.keys() {
            let own: BTreeSet<String> = labels.keys().cloned().collect();
            let own = own.into_iter().filter(|it| it != "__name__" && it != "le");
            check(own.eq(names.iter().cloned()), "labels that differ")?;
        }
        if self.kind != "histogram" {
            return Ok(());
        }
        for (labels, count) in &self.samples {
            if labels
                .get("__name__")
                .is_none_or(|suffix| suffix != "_count")
            {
                continue;
            }
            let mut last = (f64::NEG_INFINITY, 0.0);
            let mut buckets: Vec<(f64, f64)> = self
                .samples
                .iter()
                .filter(|(of, _)| names.iter().all(|name| of.get(name) == labels.get(name)))
                .filter_map(|(of, value)| Some((of.get("le")?.parse().ok()?, *value)))
                .collect();
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            for bucket in buckets {
                check(bucket.1 >= last.1, "buckets that shrink")?;
                last = bucket;
            }
            let complete = last == (f64::INFINITY, *count);
            check(
                complete,
                &format!("{name}: the last bucket is not the count"),
            )?;
        }
        Ok(())
    }
}

/// Reads labels up to the closing brace, and returns the rest of the line.
fn read_labels<'a>(mut text: &'a str, labels: &mut SampleLabels) -> Result<&'a str, String> {
    loop {
        let (name, rest) = text.split_once("=\"").ok_or("a label without a value")?;
        check(is_name(name) && !name.contains(':'), "a label that is none")?;
        let mut value = String::new();
        let mut characters = rest.char_indices();
        let end = loop {
            match characters.next() {
                None => return Err("a label without an end".to_owned()),
                Some((at, '"')) => break at,
                Some((_, '\\')) => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, other @ ('\\' | '"'))) => value.push(other),
                    _ => return Err("an escape that is none".to_owned()),
                },
                Some((_, other)) => value.push(other),
            }
        };
        let fresh = labels.insert(name.to_owned(), value).is_none();
        check(fresh, "a label twice")?;
        let rest = &rest[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => text = more,
            None => return Ok(rest.strip_prefix('}').ok_or("labels without an end")?),
        }
    }
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    let begins = characters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_');
    begins && characters.all(|it| it.is_ascii_alphanumeric() || it == '_' || it == ':')
}

fn check(holds: bool, problem: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(problem.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# HELP a_total A.\n# TYPE a_total counter\n";

    #[test]
    fn a_page_is_parsed() {
        let text = format!("{HEAD}a_total{{b=\"x\\\"\\n\",c=\"\"}} 2\n");
        let metrics = PrometheusText::parse(&text).unwrap();
        assert_eq!(
            metrics.value("a_total", &[("b", "x\"\n"), ("c", "")]),
            Some(2.0)
        );
        assert_eq!(metrics.families()["a_total"].labels().len(), 2);
    }

    #[test]
    fn a_page_that_violates_the_format_is_rejected() {
        for (text, problem) in [
            (format!("{HEAD}a_total 1"), "no end"),
            (format!("{HEAD}a_total 1\na_total 2\n"), "twice"),
            (format!("{HEAD}b_total 1\n"), "does not belong"),
            (format!("{HEAD}a_total x\n"), "is no number"),
            (format!("{HEAD}a_total{{b=\"1\"}} 1\na_total 2\n"), "differ"),
            (format!("{HEAD}a_total{{b=\"\\x\"}} 1\n"), "escape"),
            (format!("{HEAD}{HEAD}"), "a family twice"),
            ("# HELP a A.\n# TYPE a counter\n".to_owned(), "_total"),
            ("a 1\n".to_owned(), "before its family"),
        ] {
            let error = PrometheusText::parse(&text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn the_last_bucket_of_a_histogram_must_equal_its_count() {
        let page = |inf: u32| {
            format!(
                "# HELP t_seconds T.\n# TYPE t_seconds histogram\nt_seconds_bucket{{le=\"1\"}} 2\n\
                 t_seconds_bucket{{le=\"+Inf\"}} {inf}\nt_seconds_sum 1\nt_seconds_count 3\n"
            )
        };
        assert_eq!(
            PrometheusText::parse(&page(3))
                .unwrap()
                .value("t_seconds_count", &[]),
            Some(3.0)
        );
        assert!(PrometheusText::parse(&page(1)).is_err());
        assert!(PrometheusText::parse(&page(4)).is_err());
    }
}
