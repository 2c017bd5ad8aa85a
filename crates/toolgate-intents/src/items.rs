//! The items in a tool's result, and the kind of each.

use serde_json::Value;

use super::pack::{EverythingRule, ItemKind};
use super::words::plain_words;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListItem {
    pub(crate) name: String,
    /// Distinguishes things of the same name.
    pub(crate) location: Option<String>,
    pub(crate) kinds: Vec<usize>,
    pub(crate) in_everything: bool,
}

impl ListItem {
    pub(crate) fn from_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            location: None,
            kinds: Vec::new(),
            in_everything: true,
        }
    }
}

#[derive(Default)]
pub(crate) struct ItemRules<'a> {
    pub(crate) kinds: &'a [ItemKind],
    pub(crate) everything: Option<&'a EverythingRule>,
    pub(crate) plural: &'a [String],
}

/// The names at a pointer that contains `*`, each with the text at `qualifier` in the same item.
/// `is_wanted` filters by the item and the words of its name.
pub(crate) fn collect_items(
    result: &Value,
    pointer: &str,
    qualifier: Option<&str>,
    rules: &ItemRules<'_>,
    is_wanted: impl Fn(&Value, &[String]) -> bool,
) -> Vec<ListItem> {
    let (before, after) = pointer.split_once("/*").unwrap_or((pointer, ""));
    let list = result.pointer(before).map_or(&[][..], |found| match found {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    });
    let read_item = |item: &Value| {
        let name = item.pointer(after).and_then(text)?;
        let location = qualifier
            .and_then(|pointer| item.pointer(pointer))
            .and_then(text);
        let words = plain_words(&name);
        if !is_wanted(item, &words) {
            return None;
        }
        let forms: Vec<String> = words
            .iter()
            .flat_map(|word| singular_forms(word, rules.plural))
            .collect();
        let is_one =
            |(index, kind): (usize, &ItemKind)| kind.matches(item, &forms).then_some(index);
        let all = rules.kinds.iter().enumerate();
        let kinds: Vec<usize> = all.filter_map(is_one).collect();
        let in_everything = rules
            .everything
            .is_none_or(|one| one.matches(item, &forms, rules.kinds));
        Some(ListItem {
            name,
            location,
            kinds,
            in_everything,
        })
    };
    list.iter().filter_map(read_item).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(crate) fn singular_forms(word: &str, plural: &[String]) -> Vec<String> {
    // A word with a shorter stem is not a plural: `is` is not the plural of `i`.
    const MIN_STEM: usize = 3;
    let short = plural.iter().filter_map(|ending| word.strip_suffix(ending));
    let short = short.filter(|short| short.len() >= MIN_STEM);
    std::iter::once(word)
        .chain(short)
        .map(str::to_owned)
        .collect()
}

fn contains_any_of(name: &[String], list: &[String]) -> bool {
    list.iter().any(|word| name.contains(word))
}

impl ItemKind {
    fn matches(&self, item: &Value, name: &[String]) -> bool {
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let is_one = found.is_some_and(|found| self.is.iter().any(|kind| kind == found));
        (is_one || contains_any_of(name, &self.words)) && !contains_any_of(name, &self.without)
    }
}

impl EverythingRule {
    fn matches(&self, item: &Value, name: &[String], kinds: &[ItemKind]) -> bool {
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let may_be = found.is_none_or(|found| self.is.iter().any(|kind| kind == found));
        let is_named = |kind: &ItemKind| {
            contains_any_of(name, &kind.words) && !contains_any_of(name, &kind.without)
        };
        may_be && (!contains_any_of(name, &self.without) || kinds.iter().any(is_named))
    }
}
