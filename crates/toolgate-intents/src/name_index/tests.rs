use serde_json::json;

use super::super::items::{ItemRules, collect_items};
use super::*;

fn english_words() -> (NumberWords, Vec<String>) {
    let pack = super::super::Pack::english();
    (pack.numbers, pack.small)
}

fn found(names: &NameIndex, text: &str, normalizer: &NameNormalizer<'_>) -> String {
    match names.find(&plain_words(text), normalizer, true) {
        None => "nothing".to_owned(),
        Some((how, entries)) => {
            let labels: Vec<&str> = entries.iter().map(|entry| entry.label.as_str()).collect();
            format!("{how:?} {}", labels.join("/"))
        }
    }
}

#[test]
fn names_are_found_as_people_say_them() {
    let (numbers, small) = english_words();
    let normalizer = NameNormalizer {
        numbers: &numbers,
        small: &small,
    };
    let result = json!({ "devices": [
        { "name": "Kitchen Light", "location": "Kitchen" }, { "name": "Kitchen Lamp", "location": "Kitchen" },
        { "name": "Switch 1" }, { "name": "Switch 2" }, { "name": "Fan Three" }, { "name": "Socket 21" }, { "name": "Light", "location": "Bedroom" },
        { "name": "Light", "location": "Bath" }, { "name": "Café Machine", "location": "" }, { "name": 7 }, { "id": 3 }, null,
    ] });
    let items = collect_items(
        &result,
        "/devices/*/name",
        Some("/location"),
        &ItemRules::default(),
        |_, _| true,
    );
    let names = NameIndex::from_items(items, &[], &normalizer);
    for (text, expected) in [
        ("kitchen light", "Whole Kitchen Light"),
        ("kitchenlight", "Whole Kitchen Light"),
        ("light in the kitchen", "Whole Kitchen Light"),
        ("switch one", "Whole Switch 1"),
        ("switch two", "Whole Switch 2"),
        ("fan 3", "Whole Fan Three"),
        ("fan three", "Whole Fan Three"),
        ("socket twenty-one", "Whole Socket 21"),
        ("socket twenty", "nothing"),
        ("socket one", "nothing"),
        ("switch", "Part Switch 1/Switch 2"),
        ("kitchen", "Part Kitchen Light/Kitchen Lamp"),
        ("lamp", "Part Kitchen Lamp"),
        ("light", "Whole Bedroom Light/Bath Light"),
        ("bed room light", "Whole Bedroom Light"),
        ("light in the bath", "Whole Bath Light"),
        ("cafe machine", "Whole Café Machine"),
        ("kichen ligth", "Near(2) Kitchen Light"),
        ("kitchen lump", "Near(1) Kitchen Lamp"),
        ("kitchen lalp", "Near(1) Kitchen Lamp"),
        ("garage light", "nothing"),
        ("swatch", "Near(1) Switch 1/Switch 2"),
        ("lmap", "Near(1) Kitchen Lamp"),
        ("bed rom light", "Near(1) Bedroom Light"),
        ("switch three", "nothing"),
        ("bathroom light", "nothing"),
        ("light on the wall", "nothing"),
        ("the", "nothing"),
        ("", "nothing"),
    ] {
        assert_eq!(found(&names, text, &normalizer), expected, "{text}");
    }
}

#[test]
fn equally_similar_names_are_all_found() {
    let (numbers, small) = english_words();
    let normalizer = NameNormalizer {
        numbers: &numbers,
        small: &small,
    };
    let items = ["Dining", "Dinink"].map(ListItem::from_name).to_vec();
    let names = NameIndex::from_items(items, &[], &normalizer);
    assert_eq!(
        found(&names, "dinint", &normalizer),
        "Near(1) Dining/Dinink"
    );
}

#[test]
fn a_hostile_list_is_bounded() {
    let (numbers, small) = english_words();
    let normalizer = NameNormalizer {
        numbers: &numbers,
        small: &small,
    };
    let mut items: Vec<_> = (0..MAX_NAMES + 10)
        .map(|index| ListItem::from_name(&format!("Lamp {index}")))
        .collect();
    items[0].name = "x".repeat(MAX_NAME_BYTES + 1);
    items[1].name = "…".to_owned();
    let names = NameIndex::from_items(items, &[], &normalizer);
    assert_eq!(names.len(), MAX_NAMES - 1);
}
