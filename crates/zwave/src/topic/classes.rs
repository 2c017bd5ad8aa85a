//! zwave-js-ui's names for command classes in topics.

use std::borrow::Cow;
use std::sync::LazyLock;

// Sorted by number, for the binary search below.
static CLASSES: LazyLock<Vec<(u16, &str)>> = LazyLock::new(|| {
    let lines = include_str!("classes.txt").lines();
    let classes = lines.filter_map(|line| {
        let (number, name) = line.split_once(' ')?;
        Some((number.parse().ok()?, name))
    });
    classes.collect()
});

const UNKNOWN: &str = "unknownClass_";

pub(crate) fn class_name(number: u16) -> Cow<'static, str> {
    match CLASSES.binary_search_by_key(&number, |(known, _)| *known) {
        Ok(found) => Cow::Borrowed(CLASSES[found].1),
        Err(_) => Cow::Owned(format!("{UNKNOWN}{number}")),
    }
}

pub(crate) fn class_number(name: &str) -> Option<u16> {
    if let Some(number) = name.strip_prefix(UNKNOWN) {
        return number.parse().ok();
    }
    CLASSES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_one_name_and_one_number() {
        assert!(CLASSES.is_sorted_by_key(|(number, _)| *number));
        for (number, name) in CLASSES.iter().copied() {
            assert_eq!(class_name(number), name);
            assert_eq!(class_number(name), Some(number));
        }
    }

    #[test]
    fn a_class_without_a_name_is_called_by_its_number() {
        assert_eq!(class_name(159), "unknownClass_159");
        assert_eq!(class_number("unknownClass_159"), Some(159));
        for none in ["", "switch", "unknownClass_", "unknownClass_x", "37"] {
            assert_eq!(class_number(none), None, "{none}");
        }
    }
}
