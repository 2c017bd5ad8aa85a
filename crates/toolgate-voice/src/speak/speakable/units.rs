//! What stands behind a number.

/// How a unit may be written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Written {
    /// With a blank before it or without.
    Anyhow,
    /// Only with a blank: without one it is something else, such as `5m` for five minutes.
    Apart,
    /// Only behind a fraction: `0.5 A`, but `room 5 A`.
    BehindFraction,
}

use Written::{Anyhow, Apart, BehindFraction};

/// As it is written, for one, for several. Longer ones first where one begins with the other.
const UNITS: &[(&str, &str, &str, Written)] = &[
    ("°F", "degree Fahrenheit", "degrees Fahrenheit", Anyhow),
    ("°C", "degree Celsius", "degrees Celsius", Anyhow),
    ("° F", "degree Fahrenheit", "degrees Fahrenheit", Anyhow),
    ("° C", "degree Celsius", "degrees Celsius", Anyhow),
    ("℃", "degree Celsius", "degrees Celsius", Anyhow),
    ("℉", "degree Fahrenheit", "degrees Fahrenheit", Anyhow),
    ("°", "degree", "degrees", Anyhow),
    ("F", "degree Fahrenheit", "degrees Fahrenheit", Anyhow),
    ("C", "degree Celsius", "degrees Celsius", Anyhow),
    ("%", "percent", "percent", Anyhow),
    (
        "µg/m³",
        "microgram per cubic meter",
        "micrograms per cubic meter",
        Anyhow,
    ),
    (
        "μg/m³",
        "microgram per cubic meter",
        "micrograms per cubic meter",
        Anyhow,
    ),
    ("km/h", "kilometer per hour", "kilometers per hour", Anyhow),
    ("m/s", "meter per second", "meters per second", Anyhow),
    ("kWh", "kilowatt hour", "kilowatt hours", Anyhow),
    ("MWh", "megawatt hour", "megawatt hours", Anyhow),
    ("Wh", "watt hour", "watt hours", Anyhow),
    ("kW", "kilowatt", "kilowatts", Anyhow),
    ("MW", "megawatt", "megawatts", Anyhow),
    ("W", "watt", "watts", Anyhow),
    ("mV", "millivolt", "millivolts", Anyhow),
    ("V", "volt", "volts", Anyhow),
    ("mA", "milliampere", "milliamperes", Anyhow),
    ("A", "ampere", "amperes", BehindFraction),
    ("kHz", "kilohertz", "kilohertz", Anyhow),
    ("MHz", "megahertz", "megahertz", Anyhow),
    ("GHz", "gigahertz", "gigahertz", Anyhow),
    ("Hz", "hertz", "hertz", Anyhow),
    ("dB", "decibel", "decibels", Anyhow),
    ("lx", "lux", "lux", Anyhow),
    ("lm", "lumen", "lumens", Anyhow),
    ("K", "kelvin", "kelvins", Apart),
    ("hPa", "hectopascal", "hectopascals", Anyhow),
    ("kPa", "kilopascal", "kilopascals", Anyhow),
    ("mbar", "millibar", "millibars", Anyhow),
    (
        "psi",
        "pound per square inch",
        "pounds per square inch",
        Anyhow,
    ),
    ("mph", "mile per hour", "miles per hour", Anyhow),
    ("km²", "square kilometer", "square kilometers", Anyhow),
    ("m²", "square meter", "square meters", Anyhow),
    ("m³", "cubic meter", "cubic meters", Anyhow),
    ("ft²", "square foot", "square feet", Anyhow),
    ("km", "kilometer", "kilometers", Anyhow),
    ("cm", "centimeter", "centimeters", Anyhow),
    ("mm", "millimeter", "millimeters", Anyhow),
    ("m", "meter", "meters", Apart),
    ("mi", "mile", "miles", Anyhow),
    ("ft", "foot", "feet", Anyhow),
    ("kg", "kilogram", "kilograms", Anyhow),
    ("mg", "milligram", "milligrams", Anyhow),
    ("g", "gram", "grams", Anyhow),
    ("lbs", "pound", "pounds", Anyhow),
    ("lb", "pound", "pounds", Anyhow),
    ("oz", "ounce", "ounces", Anyhow),
    ("ml", "milliliter", "milliliters", Anyhow),
    ("mL", "milliliter", "milliliters", Anyhow),
    ("l", "liter", "liters", Anyhow),
    ("L", "liter", "liters", Anyhow),
    ("gal", "gallon", "gallons", Anyhow),
    ("kB", "kilobyte", "kilobytes", Anyhow),
    ("KB", "kilobyte", "kilobytes", Anyhow),
    ("MB", "megabyte", "megabytes", Anyhow),
    ("GB", "gigabyte", "gigabytes", Anyhow),
    ("TB", "terabyte", "terabytes", Anyhow),
    ("Mbps", "megabit per second", "megabits per second", Anyhow),
    ("Gbps", "gigabit per second", "gigabits per second", Anyhow),
    ("ms", "millisecond", "milliseconds", Anyhow),
    ("s", "second", "seconds", Anyhow),
    ("sec", "second", "seconds", Anyhow),
    ("min", "minute", "minutes", Anyhow),
    ("mins", "minute", "minutes", Anyhow),
    ("h", "hour", "hours", Anyhow),
    ("hr", "hour", "hours", Anyhow),
    ("hrs", "hour", "hours", Anyhow),
    ("ppm", "part per million", "parts per million", Anyhow),
    ("bpm", "beat per minute", "beats per minute", Anyhow),
    ("rpm", "turn per minute", "turns per minute", Anyhow),
    ("x", "time", "times", Anyhow),
];

/// Signs of money: for one, for several, for one and several hundredths.
const MONEY: &[(char, &str, &str, &str, &str)] = &[
    ('$', "dollar", "dollars", "cent", "cents"),
    ('€', "euro", "euros", "cent", "cents"),
    ('£', "pound", "pounds", "penny", "pence"),
    ('¥', "yen", "yen", "sen", "sen"),
];

/// Of millions of dollars, the dollars come last.
const POWERS: [&str; 4] = [" thousand", " million", " billion", " trillion"];

/// The unit that a text begins with, behind this number, in words; and what follows it.
pub(super) fn unit<'a>(number: &str, text: &'a str) -> Option<(&'static str, &'a str)> {
    let blank = text
        .chars()
        .next()
        .filter(|first| matches!(first, ' ' | '\u{a0}' | '\u{202f}'));
    let after_blank = &text[blank.map_or(0, char::len_utf8)..];
    UNITS.iter().find_map(|(symbol, one, several, written)| {
        let rest = after_blank.strip_prefix(symbol)?;
        let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || "²³/°".contains(next));
        let fits = match written {
            Anyhow => true,
            Apart => blank.is_some(),
            BehindFraction => number.contains('.'),
        };
        (ends && fits).then_some((if number == "1" { *one } else { *several }, rest))
    })
}

/// An amount of money in words, with what follows it; none if the sign is no money.
pub(super) fn money<'a>(sign: char, number: &str, rest: &'a str) -> Option<(String, &'a str)> {
    let (_, one, several, cent, cents) = MONEY.iter().find(|(known, ..)| *known == sign)?;
    for power in POWERS {
        if let Some(rest) = rest.strip_prefix(power) {
            return Some((format!("{number}{power} {several}"), rest));
        }
    }
    let (whole, hundredths) = number.split_once('.').unwrap_or((number, ""));
    let name = |number: &str, one: &'static str, several: &'static str| {
        if number == "1" { one } else { several }
    };
    let small = hundredths.trim_start_matches('0');
    let said = match (whole, hundredths.len()) {
        (_, 2) if small.is_empty() => format!("{whole} {}", name(whole, one, several)),
        ("0", 2) => format!("{small} {}", name(small, cent, cents)),
        (_, 2) => format!(
            "{whole} {} and {small} {}",
            name(whole, one, several),
            name(small, cent, cents)
        ),
        _ => format!("{number} {}", name(number, one, several)),
    };
    Some((said, rest))
}

pub(super) fn is_money(sign: char) -> bool {
    MONEY.iter().any(|(known, ..)| *known == sign)
}
