//! `cargo run --manifest-path fuzz/prepare/Cargo.toml`: writes what helps the fuzzers along, a dictionary of the language's words to
//! `fuzz/math.dict`, the expressions of the table that is compared with mathjs to `fuzz/corpus/math/`, and Wyoming's golden vectors
//! to `fuzz/corpus/wyoming/`.

use std::fs;
use std::io;
use std::path::Path;

const TABLE: &str = include_str!("../../../crates/toolgate-math/tests/differential/table.txt");
const GOLDEN: &str =
    include_str!("../../../crates/toolgate-voice/src/wyoming/event/wire/golden.txt");

/// What is neither a name nor a unit, or reaches further together with its arguments.
const PIECES: [&str; 40] = [
    " to ",
    " in ",
    " mod ",
    " and ",
    " or ",
    " xor ",
    "not ",
    "end",
    "f(x)=",
    "f(",
    "a=",
    "a[",
    "[1,2;3,4]",
    "[1,2,3]",
    "1:3",
    "1e308",
    "1e-308",
    "1e15",
    "9007199254740993",
    "2i",
    "\"a\"",
    "\"fixed\"",
    "{a:1}",
    "{precision:",
    "notation:",
    "bignumber(\"1e2000\")",
    "bignumber(\"1e-2000\")",
    "fraction(1,3)",
    "fraction(\"0.(3)\")",
    "0x1f",
    "0b101i8",
    "1e9",
    ".*",
    "./",
    ".^",
    ">>>",
    "^|",
    "?.",
    "??",
    "Infinity",
];

fn main() -> io::Result<()> {
    let folder = &Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    math(folder)?;
    wyoming(&folder.join("corpus/wyoming"))
}

/// Each event on its own, in pieces of seven bytes.
fn wyoming(corpus: &Path) -> io::Result<()> {
    fs::create_dir_all(corpus)?;
    for (number, vector) in GOLDEN.trim_end().split("\n\n").enumerate() {
        let lines = vector.lines().filter(|line| !line.starts_with("= "));
        let mut wire: Vec<&str> = lines.collect();
        if wire.len() == 1 {
            wire.push("");
        }
        fs::write(
            corpus.join(format!("golden-{number}")),
            format!("\u{7}{}", wire.join("\n")),
        )?;
    }
    Ok(())
}

fn math(folder: &Path) -> io::Result<()> {
    let functions = toolgate_math::functions().map(|(name, ..)| format!("{name}("));
    let constants = toolgate_math::constants().map(|(name, ..)| name.to_owned());
    let units = toolgate_math::units().map(|(name, ..)| format!(" {name}"));
    let pieces = PIECES.iter().map(|piece| (*piece).to_owned());
    let mut words: Vec<String> = functions
        .chain(constants)
        .chain(units)
        .chain(pieces)
        .collect();
    words.sort();
    words.dedup();
    let dictionary: String = words.iter().map(|word| entry(word)).collect();
    fs::write(folder.join("math.dict"), dictionary)?;

    let corpus = folder.join("corpus/math");
    fs::create_dir_all(&corpus)?;
    let expressions = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("==="));
    for (number, expression) in expressions.enumerate() {
        fs::write(
            corpus.join(format!("table-{number}")),
            expression.replace('⏎', "\n"),
        )?;
    }
    Ok(())
}

/// A word as libFuzzer's dictionaries spell it: in quotes, everything unusual as bytes.
fn entry(word: &str) -> String {
    let bytes = word.bytes().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("\"{}\"\n", bytes.collect::<String>())
}
