//! Converts a column of compact JSON, as serde_json reports it, into the path of the value there.

/// The path of the value that the byte before `column` belongs to.
pub(super) fn path_at(json: &str, column: usize) -> String {
    let mut open: Vec<OpenContainer> = Vec::new();
    let mut bytes = json.bytes().enumerate().take(column);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' => open.push(OpenContainer::Member { name: None }),
            b'[' => open.push(OpenContainer::Item { index: 0 }),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(OpenContainer::Member { name }) => *name = None,
                Some(OpenContainer::Item { index }) => *index += 1,
                None => {}
            },
            b'"' => {
                let mut escaped = false;
                let end = bytes.find(|(_, byte)| {
                    let closes = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    closes
                });
                let text = &json[at + 1..end.map_or(json.len().min(column), |(end, _)| end)];
                if let Some(OpenContainer::Member { name: name @ None }) = open.last_mut() {
                    *name = Some(text.to_owned());
                }
            }
            _ => {}
        }
    }
    open.iter()
        .map(|step| match step {
            OpenContainer::Member { name } => name
                .as_ref()
                .map_or_else(String::new, |name| format!(".{name}")),
            OpenContainer::Item { index } => format!("[{index}]"),
        })
        .collect()
}

enum OpenContainer {
    Member { name: Option<String> },
    Item { index: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_any_column_is_found() {
        let json = r#"{"a":{"x\"y":1},"b":[true,{"c":"d,e"}]}"#;
        let path = |needle: &str| path_at(json, json.find(needle).expect("it is there") + 1);
        assert_eq!(path("1"), r#".a.x\"y"#);
        assert_eq!(path("true"), ".b[0]");
        assert_eq!(path("d,e"), ".b[1].c");
        assert_eq!(path_at(json, json.len()), "");
    }
}
