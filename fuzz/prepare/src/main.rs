//! Writes dictionaries and initial corpora for the fuzzers.
//!
//! - `fuzz/math.dict`: the names, units and operators of the expression language
//! - `fuzz/corpus/math/`: the expressions that are compared with mathjs
//! - `fuzz/corpus/wyoming/`: Wyoming's golden vectors
//! - `fuzz/config.dict`: the keys of a configuration
//! - `fuzz/corpus/config/`: the examples of the documentation
//! - for each of the others, a few valid inputs
//!
//! Run it with `cargo run --manifest-path fuzz/prepare/Cargo.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

const TABLE: &str = include_str!("../../../crates/toolgate-math/tests/differential/table.txt");
const GOLDEN: &str =
    include_str!("../../../crates/toolgate-voice/src/wyoming/event/wire/golden.txt");

const CONFIG_SCHEMA: &str = include_str!("../../../docs/toolgate.schema.json");
const CONFIG_TEMPLATE: &str = include_str!("../../../crates/toolgate/src/commands/init.jsonc");

/// Parts of a configuration that aren't words of its schema.
const CONFIG_PIECES: [&str; 12] = [
    "${KEY}",
    "${NONE}",
    "${EMPTY:-x}",
    "${env:KEY}",
    "${input:x}",
    "~/",
    "\\u001b[2K",
    "http://h/",
    "// x\n",
    "/* x */",
    "\u{feff}",
    "\0",
];

const CONFIGS: [&str; 6] = [
    r#"{"mcpServers":{"a":{"command":"x","args":["y"]},"b":{"url":"http://h/"}}}"#,
    "{\"mcpServers\":{\"a\":{\"command\":\"x\"},\"b\":{\"command\":\"y\"}}}\0{\"mcpServers\":{\"b\":{\"command\":\"y\"},\"a\":{\"command\":\"x\"}}}",
    "{\"serve\":{\"tokens\":[{\"token\":\"0123456789abcdef\",\"allow\":[\"a\"]}]}}\0{\"serve\":{\"tokens\":[{\"token\":\"0123456789abcdef\"}]}}",
    r#"{"search":{"backend":"${KEY}","key":"${NONE}"},"limits":{"timeout":"5s","perTool":{"x":{"timeout":"${KEY}"}}}}"#,
    r#"{"voice":{"asr":"tcp://h:1","output":"o.wav"},"mqtt":{"url":"mqtt://a:b@h","password":"${KEY}"},"journal":{"file":"~/j"}}"#,
    r#"{"servers":{"c":{"container":{"image":"i","engine":["podman"],"mounts":["a:/b:ro"]},"sandbox":{"level":"strict","ports":[1]},"env":{"TOKEN":"${KEY}"}}}}"#,
];

/// Parts of expressions that are neither names nor units, or are more useful with arguments.
const MATH_PIECES: [&str; 40] = [
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

const JSON_RPC: [&str; 6] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":[1,{"b":null}]},"_meta":{"progressToken":7}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"r"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\u00e4"}],"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":{}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"ping"}"#,
];

const SSE: [&str; 3] = [
    "\u{7}event: message\nid: 1\ndata: {\"jsonrpc\":\"2.0\"}\n\n: comment\nretry: 500\n\n",
    "\u{1}\u{feff}data: a\r\ndata: b\r\n\r\nid\r\rdata\r\r",
    "\u{3}data: 0123456789012345678901234567890123456789012345678901234567890123456789\n\ndata: x\n\n",
];

const HEADS: [&str; 3] = [
    "\u{5}POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
    "\u{2}POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "\u{9}\r\nGET /mcp HTTP/1.1\nAuthorization: Bearer 0123456789\n\n",
];

const SCHEMAS: [&str; 4] = [
    r##"[{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"}},{"type":"string","pattern":"^(a|b)*$","maxLength":9}]}}},{"a":[["ab"],"x"]}]"##,
    r#"[{"type":"object","required":["x"],"additionalProperties":false,"patternProperties":{"^x":{"enum":[1,"a",null]}}},{"x":1,"y":2}]"#,
    r#"[{"type":"object","allOf":[{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"not":{"required":["b"]}}}],"unevaluatedProperties":false},{"a":1}]"#,
    r#"[{"type":"object","properties":{"n":{"type":"integer","multipleOf":3,"minimum":0},"l":{"uniqueItems":true,"contains":{"const":1},"prefixItems":[true,false]}}},{"n":4,"l":[1,1]}]"#,
];

fn main() -> io::Result<()> {
    let folder = &Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    math(folder)?;
    wyoming(&folder.join("corpus/wyoming"))?;
    config(folder)?;
    for (target, inputs) in [
        ("json_rpc", &JSON_RPC[..]),
        ("sse", &SSE),
        ("heads", &HEADS),
        ("schema", &SCHEMAS),
        ("config", &CONFIGS),
    ] {
        let corpus = folder.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        for (number, input) in inputs.iter().enumerate() {
            fs::write(corpus.join(format!("shape-{number}")), input)?;
        }
    }
    Ok(())
}

/// Writes each event to a file of its own. The first byte makes the fuzzer read it in chunks of
/// seven bytes.
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

/// Writes the template of `toolgate init`, every example of the documentation, and a dictionary of
/// the schema's words.
fn config(folder: &Path) -> io::Result<()> {
    let corpus = folder.join("corpus/config");
    fs::create_dir_all(&corpus)?;
    fs::write(corpus.join("template"), CONFIG_TEMPLATE)?;
    let mut number = 0;
    for page in fs::read_dir(folder.join("../docs"))? {
        let page = page?.path();
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(page)?;
        let examples = text.split("```json\n").skip(1);
        for example in examples.filter_map(|rest| rest.split("```").next()) {
            fs::write(corpus.join(format!("example-{number}")), example)?;
            number += 1;
        }
    }
    let is_word = |word: &&str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-$".contains(c);
        (2..=24).contains(&word.len()) && word.chars().all(is_plain)
    };
    let words = CONFIG_SCHEMA.split('"').skip(1).step_by(2).filter(is_word);
    let words: BTreeSet<String> = words.map(|word| format!("\"{word}\"")).collect();
    let words = words.iter().map(String::as_str).chain(CONFIG_PIECES);
    fs::write(
        folder.join("config.dict"),
        words.map(entry).collect::<String>(),
    )
}

fn math(folder: &Path) -> io::Result<()> {
    let functions = toolgate_math::functions().map(|(name, ..)| format!("{name}("));
    let constants = toolgate_math::constants().map(|(name, ..)| name.to_owned());
    let units = toolgate_math::units().map(|(name, ..)| format!(" {name}"));
    let pieces = MATH_PIECES.iter().map(|piece| (*piece).to_owned());
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

/// A line of a libFuzzer dictionary: the word in quotes, with unusual characters as bytes.
fn entry(word: &str) -> String {
    let bytes = word.bytes().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("\"{}\"\n", bytes.collect::<String>())
}
