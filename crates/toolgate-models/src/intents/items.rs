//! What a tool's result lists, and what kind of thing each item is.

use serde_json::Value;

use super::pack::Kind;
use super::words::plain_words;

/// One thing that a tool told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) name: String,
    /// Where it is, which tells things of the same name apart.
    pub(crate) place: Option<String>,
    /// Which of the kinds it is one of.
    pub(crate) kinds: Vec<usize>,
}

impl Item {
    /// One that nothing but its name is known of.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            place: None,
            kinds: Vec::new(),
        }
    }
}

/// The texts a pointer with `*` in it leads to, each with what `qualifier` leads to from the same item. An item is wanted or
/// not by what it is and the words of its name.
pub(crate) fn items(
    result: &Value,
    pointer: &str,
    qualifier: Option<&str>,
    kinds: &[Kind],
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
        let is_one = |(index, kind): (usize, &Kind)| kind.has(item, &words).then_some(index);
        let kinds = kinds.iter().enumerate().filter_map(is_one).collect();
        Some(Item { name, place, kinds })
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

impl Kind {
    /// True if an item with these words in its name is one of them.
    fn has(&self, item: &Value, name: &[String]) -> bool {
        let is_called = |list: &[String]| list.iter().any(|word| name.contains(word));
        let found = item.pointer(&self.pointer).and_then(Value::as_str);
        let is_one = found.is_some_and(|found| self.is.iter().any(|kind| kind == found));
        (is_one || is_called(&self.words)) && !is_called(&self.without)
    }
}
