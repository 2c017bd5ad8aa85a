//! What a tool's result lists, and what kind of thing each item is.

use serde_json::Value;

use super::pack::{Everything, Kind};
use super::words::plain_words;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) name: String,
    /// Where it is, which tells things of the same name apart.
    pub(crate) place: Option<String>,
    pub(crate) kinds: Vec<usize>,
    /// Whether `everything` means it too.
    pub(crate) counts: bool,
}

impl Item {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            place: None,
            kinds: Vec::new(),
            counts: true,
        }
    }
}

#[derive(Default)]
pub(crate) struct Kinds<'a> {
    pub(crate) all: &'a [Kind],
    pub(crate) everything: Option<&'a Everything>,
    pub(crate) plural: &'a [String],
}

/// The texts a pointer with `*` in it leads to, each with what `qualifier` leads to from the same item. An item is wanted or
/// not by what it is and the words of its name.
pub(crate) fn items(
    result: &Value,
    pointer: &str,
    qualifier: Option<&str>,
    kinds: &Kinds<'_>,
    is_wanted: impl Fn(&Value, &[String]) -> bool,
) -> Vec<Item> {
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
            .flat_map(|word| forms(word, kinds.plural))
            .collect();
        let is_one = |(index, kind): (usize, &Kind)| kind.has(item, &forms).then_some(index);
        let all = kinds.all.iter().enumerate();
        let of: Vec<usize> = all.filter_map(is_one).collect();
        let counts = kinds
            .everything
            .is_none_or(|one| one.has(item, &forms, kinds.all));
        Some(Item {
            name,
            place,
            kinds: of,
            counts,
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

/// A word, and what one of them is called if it is a word for several.
pub(crate) fn forms(word: &str, plural: &[String]) -> Vec<String> {
    const SHORTEST: usize = 3;
    let short = plural.iter().filter_map(|ending| word.strip_suffix(ending));
    let short = short.filter(|short| short.len() >= SHORTEST);
    std::iter::once(word)
        .chain(short)
        .map(str::to_owned)
        .collect()
}

fn is_called(name: &[String], list: &[String]) -> bool {
    list.iter().any(|word| name.contains(word))
}

impl Kind {
    /// True if an item with these words in its name is one of them.
    fn has(&self, item: &Value, name: &[String]) -> bool {
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let is_one = found.is_some_and(|found| self.is.iter().any(|kind| kind == found));
        (is_one || is_called(name, &self.words)) && !is_called(name, &self.without)
    }
}

impl Everything {
    /// True if an item with these words in its name is meant.
    fn has(&self, item: &Value, name: &[String], kinds: &[Kind]) -> bool {
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let may_be = found.is_none_or(|found| self.is.iter().any(|kind| kind == found));
        let is_named =
            |kind: &Kind| is_called(name, &kind.words) && !is_called(name, &kind.without);
        may_be && (!is_called(name, &self.without) || kinds.iter().any(is_named))
    }
}
