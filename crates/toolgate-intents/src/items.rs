//! The items in a tool's result, and the kind of each.

use serde_json::Value;

use super::pack::{EverythingRule, ItemKind};
use super::words::plain_words;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListItem {
    pub(crate) name: String,
    /// Its location, which tells things of the same name apart.
    pub(crate) place: Option<String>,
    pub(crate) kinds: Vec<usize>,
    pub(crate) in_everything: bool,
}

impl ListItem {
    pub(crate) fn from_name(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            place: None,
            kinds: Vec::new(),
            in_everything: true,
        }
    }
}

#[derive(Default)]
pub(crate) struct ItemRules<'a> {
    pub(crate) all: &'a [ItemKind],
    pub(crate) everything: Option<&'a EverythingRule>,
    pub(crate) plural: &'a [String],
}

/// The names at a pointer that contains `*`, each with the text at `qualifier` in the same item.
/// `is_wanted` filters by the item and the words of its name.
pub(crate) fn collect_items(
    result: &Value,
    pointer: &str,
    qualifier: Option<&str>,
    kinds: &ItemRules<'_>,
    is_wanted: impl Fn(&Value, &[String]) -> bool,
) -> Vec<ListItem> {
    let (before, after) = pointer.split_once("/*").unwrap_or((pointer, ""));
    let list = result.pointer(before).map_or(&[][..], |found| match found {
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    });
    let of = |item: &Value| {
        let name = item.pointer(after).and_then(text)?;
        let place = qualifier
            .and_then(|pointer| item.pointer(pointer))
            .and_then(text);
        let words = plain_words(&name);
        if !is_wanted(item, &words) {
            return None;
        }
        let forms: Vec<String> = words
            .iter()
            .flat_map(|word| singular_forms(word, kinds.plural))
            .collect();
        let is_one =
            |(index, kind): (usize, &ItemKind)| kind.matches(item, &forms).then_some(index);
        let all = kinds.all.iter().enumerate();
        let of: Vec<usize> = all.filter_map(is_one).collect();
        let counts = kinds
            .everything
            .is_none_or(|one| one.matches(item, &forms, kinds.all));
        Some(ListItem {
            name,
            place,
            kinds: of,
            in_everything: counts,
        })
    };
    list.iter().filter_map(of).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub(crate) fn singular_forms(word: &str, plural: &[String]) -> Vec<String> {
    // Shorter stems are not plurals: `is` is not several `i`.
    const MIN_STEM: usize = 3;
    let short = plural.iter().filter_map(|ending| word.strip_suffix(ending));
    let short = short.filter(|short| short.len() >= MIN_STEM);
    std::iter::once(word)
        .chain(short)
        .map(str::to_owned)
        .collect()
}

fn is_called(name: &[String], list: &[String]) -> bool {
    list.iter().any(|word| name.contains(word))
}

impl ItemKind {
    fn matches(&self, item: &Value, name: &[String]) -> bool {
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let is_one = found.is_some_and(|found| self.is.iter().any(|kind| kind == found));
        (is_one || is_called(name, &self.words)) && !is_called(name, &self.without)
    }
}

impl EverythingRule {
    fn matches(&self, item: &Value, name: &[String], kinds: &[ItemKind]) -> bool {
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let may_be = found.is_none_or(|found| self.is.iter().any(|kind| kind == found));
        let is_named =
            |kind: &ItemKind| is_called(name, &kind.words) && !is_called(name, &kind.without);
        may_be && (!is_called(name, &self.without) || kinds.iter().any(is_named))
    }
}
