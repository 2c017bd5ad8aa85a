//! The curated table and the list of its known differences.

use std::collections::BTreeMap;

use crate::mathjs::MathjsReply;

/// Stands for a line break inside an expression, as the table has one expression per line.
const LINE_BREAK: &str = "⏎";

pub(crate) struct TableEntry {
    pub(crate) class: String,
    pub(crate) expression: String,
}

impl TableEntry {
    /// The expression as the table spells it.
    pub(crate) fn table_text(&self) -> String {
        self.expression.replace('\n', LINE_BREAK)
    }

    pub(crate) fn is_rejected(&self) -> bool {
        self.class.starts_with("rejected")
    }

    pub(crate) fn is_excluded(&self) -> bool {
        self.class == "excluded"
    }
}

pub(crate) fn entries() -> Vec<TableEntry> {
    let mut class = None;
    let mut entries = Vec::new();
    for line in include_str!("table.txt").lines() {
        if let Some(heading) = line.strip_prefix("=== ") {
            class = Some(heading.to_owned());
        } else if let (Some(class), false) = (&class, line.is_empty()) {
            entries.push(TableEntry {
                class: class.clone(),
                expression: line.replace(LINE_BREAK, "\n"),
            });
        }
    }
    entries
}

/// The reason for each known difference, by its expression as the table spells it.
pub(crate) fn known_differences() -> BTreeMap<String, String> {
    include_str!("known-differences.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .map(|line| {
            let (expression, reason) = line
                .split_once(" — ")
                .unwrap_or_else(|| panic!("no reason in: {line}"));
            (expression.to_owned(), reason.to_owned())
        })
        .collect()
}

/// Explains why a line is in the wrong class, if it is.
pub(crate) fn misplaced(entry: &TableEntry, reply: &MathjsReply) -> Option<String> {
    match (reply, entry.is_rejected()) {
        (MathjsReply::Value(_), true) => Some(format!("in a rejected class, yet mathjs: {reply}")),
        (MathjsReply::Error(_), false) => {
            Some(format!("in no rejected class, yet mathjs: {reply}"))
        }
        _ => None,
    }
}
