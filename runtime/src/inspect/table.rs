//! Inspected objects as a table, one line for each.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kopf_core::inspection::{HandlerState, InspectedHandler, Inspection};

use super::InspectedObject;
use super::text::{age, change, printable, shortened, until};

/// The longest message in a normal table.
const LONGEST_MESSAGE: usize = 60;

const GAP: usize = 3;

/// How much a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    Normal,
    Wide,
}

/// The table of some objects; a sentence if there are none.
pub(super) fn of(found: &[InspectedObject], width: Width, now: Timestamp) -> String {
    if found.is_empty() {
        return "No objects found.\n".to_owned();
    }
    let kinds: BTreeSet<_> = found.iter().map(|it| &it.kind).collect();
    let columns = Columns {
        kind: kinds.len() > 1,
        namespace: found.iter().any(|it| it.namespace.is_some()),
        width,
    };
    let rows = found.iter().map(|object| columns.row(object, now));
    let rows: Vec<_> = std::iter::once(columns.header()).chain(rows).collect();
    aligned(&rows)
}

/// One object whose handling changed, beside the time.
pub(super) fn line(object: &InspectedObject, width: Width, now: Timestamp) -> String {
    let columns = Columns {
        kind: true,
        namespace: object.namespace.is_some(),
        width,
    };
    let clock = now.strftime("%H:%M:%SZ").to_string();
    let cells = columns.row(object, now).into_iter();
    let cells: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
    format!("{clock}  {}\n", cells.join("  "))
}

struct Columns {
    kind: bool,
    namespace: bool,
    width: Width,
}

impl Columns {
    fn header(&self) -> Vec<String> {
        let cells = [
            self.kind.then_some("KIND"),
            self.namespace.then_some("NAMESPACE"),
            Some("NAME"),
            Some("STATE"),
            Some("SINCE"),
            Some("HANDLERS"),
            Some("NEXT"),
            Some("MESSAGE"),
            self.is_wide().then_some("CHANGES"),
            self.is_wide().then_some("FINALIZERS"),
        ];
        cells.into_iter().flatten().map(str::to_owned).collect()
    }

    fn row(&self, object: &InspectedObject, now: Timestamp) -> Vec<String> {
        let inspection = &object.inspection;
        let longest = match self.width {
            Width::Normal => LONGEST_MESSAGE,
            Width::Wide => usize::MAX,
        };
        let changes = || {
            let changes = inspection.changes.iter();
            let changes: Vec<_> = changes.map(|item| change(inspection, item)).collect();
            changes.join("; ")
        };
        let finalizers = || {
            let finalizers = inspection.finalizers.iter();
            let finalizers: Vec<_> = finalizers.map(|it| printable(&it.name)).collect();
            finalizers.join(", ")
        };
        let cells = [
            self.kind.then(|| object.kind.clone()),
            self.namespace
                .then(|| object.namespace.clone().unwrap_or_default()),
            Some(object.name.clone()),
            Some(inspection.state.as_str().to_owned()),
            Some(inspection.since.map_or_else(String::new, |at| age(at, now))),
            Some(handlers(inspection)),
            Some(
                inspection
                    .next_attempt()
                    .map_or_else(String::new, |at| until(at, now)),
            ),
            Some(shortened(&message(inspection), longest)),
            self.is_wide().then(changes),
            self.is_wide().then(finalizers),
        ];
        cells.into_iter().flatten().collect()
    }

    fn is_wide(&self) -> bool {
        self.width == Width::Wide
    }
}

/// How many handlers are in which state.
fn handlers(inspection: &Inspection) -> String {
    let states = [
        HandlerState::Failed,
        HandlerState::Pending,
        HandlerState::Waiting,
        HandlerState::Succeeded,
    ];
    let counts = states.into_iter().filter_map(|state| {
        let same = |it: &&InspectedHandler| it.state == state;
        let count = inspection.handlers.iter().filter(same).count();
        (count > 0).then(|| format!("{count} {}", state.as_str()))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// What keeps the object from being handled.
fn message(inspection: &Inspection) -> String {
    let left = |it: &&InspectedHandler| it.state != HandlerState::Succeeded;
    let mut left = inspection.handlers.iter().filter(left);
    let error = left.find_map(|it| {
        let message = it.record.message.as_deref()?;
        Some(format!(
            "{}: {}",
            printable(it.id.as_str()),
            printable(message)
        ))
    });
    let held = || {
        let names: Vec<_> = inspection
            .finalizers
            .iter()
            .map(|it| printable(&it.name))
            .collect();
        let is_held = inspection.state == kopf_core::inspection::HandlingState::Deleting;
        (is_held && !names.is_empty()).then(|| format!("held by {}", names.join(", ")))
    };
    error.or_else(held).unwrap_or_default()
}

/// The rows with columns of equal width; trailing empty columns take no space.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            let padding = width + GAP - cell.chars().count();
            line.extend(std::iter::repeat_n(' ', padding));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect();
        let rows = vec![
            row(&["NAME", "STATE"]),
            row(&["a-long-name", "new"]),
            row(&["b", ""]),
        ];
        assert_eq!(
            aligned(&rows),
            "NAME          STATE\na-long-name   new\nb\n"
        );
    }
}
