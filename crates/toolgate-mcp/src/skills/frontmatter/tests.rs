use serde_json::json;

use super::*;

fn parse(yaml: &str) -> Result<Value, FrontmatterError> {
    parse_frontmatter(&format!("---\n{yaml}\n---\nThe body: - [\n")).map(Value::Object)
}

#[test]
fn common_yaml_is_read_as_yaml_defines_it() {
    for (yaml, expected) in [
        (
            "name: git-workflow\ndescription: Follow it, always # not this",
            json!({ "name": "git-workflow", "description": "Follow it, always" }),
        ),
        (
            "a: 1\nb: -2.50\nc: true\nd: ~\ne:\nf: 'it''s'\ng: \"a\\tb\\u00fc\"\nh: 1e3",
            json!({ "a": 1, "b": -2.5, "c": true, "d": null, "e": null, "f": "it's", "g": "a\tbü", "h": 1000.0 }),
        ),
        (
            "a: yes\nb: 2026-01-01\nc: 0x1F\nd: 0o17\ne: 007\nf: 1.2.3\ng: .inf\nh: v1\ni: 1_000",
            json!({ "a": "yes", "b": "2026-01-01", "c": 31, "d": 15, "e": 7, "f": "1.2.3", "g": ".inf", "h": "v1", "i": "1_000" }),
        ),
        (
            "metadata:\n  version: \"2.1.0\"\n  # why\n  deep:\n    er: x\n\nlicense: MIT",
            json!({ "metadata": { "version": "2.1.0", "deep": { "er": "x" } }, "license": "MIT" }),
        ),
        (
            "a:\n- x\n- 1\nb:\n  - k: v\n    l: [1, 'two', {three: 3}]\n  -\n    m: n\nc: []\nd: {}",
            json!({ "a": ["x", 1], "b": [{ "k": "v", "l": [1, "two", { "three": 3 }] }, { "m": "n" }], "c": [], "d": {} }),
        ),
        (
            "a: |\n  one\n   two\n\n  three\n\nb: >\n  folded\n  text\n\n  next\n    kept\n  end\nc: |-\n  x\nd: |+\n  y\n\ne: 1",
            json!({ "a": "one\n two\n\nthree\n", "b": "folded text\nnext\n  kept\nend\n", "c": "x", "d": "y\n\n", "e": 1 }),
        ),
        (
            "description: A long text\n  that goes on\n  and on\nurl: https://example.org/a#b\n\"quoted key\": 1",
            json!({ "description": "A long text that goes on and on", "url": "https://example.org/a#b", "quoted key": 1 }),
        ),
    ] {
        assert_eq!(parse(yaml), Ok(expected), "{yaml}");
        let windows = parse_frontmatter(&format!(
            "\u{feff}---\r\n{}\r\n--- \r\n",
            yaml.replace('\n', "\r\n")
        ));
        assert_eq!(windows.map(Value::Object), parse(yaml), "{yaml}");
    }
}

#[test]
fn unsupported_yaml_is_refused_with_its_line() {
    for (yaml, line) in [
        ("a: 1\na: 2", 2),
        ("a: &x 1", 1),
        ("a: *x", 1),
        ("a: !!int 1", 1),
        ("a: b: c", 1),
        ("a: \"open", 1),
        ("a: [1, 2", 1),
        ("a: [1] 2", 1),
        ("a: {b: 1, b: 2}", 1),
        ("a: {b}", 1),
        ("a: \"\\q\"", 1),
        ("a: 1\n   b: 2", 2),
        ("a:\n  b: 1\n c: 2", 3),
        ("a: |2\n  x", 1),
        ("? a", 1),
        ("- a", 1),
        ("just text", 1),
        ("a: 1\n\tb: 2", 2),
    ] {
        match parse(yaml) {
            Err(FrontmatterError::Invalid { line: found, .. }) => assert_eq!(found, line, "{yaml}"),
            other => panic!("{yaml}: {other:?}"),
        }
    }
    for text in [
        "",
        "name: x",
        "---\nname: x\n",
        " ---\nname: x\n---\n",
        "----\nname: x\n---\n",
    ] {
        assert_eq!(
            parse_frontmatter(text),
            Err(FrontmatterError::Missing),
            "{text}"
        );
    }
}

#[test]
fn hostile_frontmatter_is_bounded() {
    let deep: String = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    let wide: String = (0..3000).map(|n| format!("k{n}: 1\n")).collect();
    let long = format!("a: {}", "x".repeat(MAX_BYTES));
    let dashes = format!("a:\n  {}x", "- ".repeat(200));
    for yaml in [deep, wide, long, dashes] {
        let parsed = parse(&yaml);
        assert_eq!(parsed, Err(FrontmatterError::TooLarge), "{yaml:.40}");
    }
    let brackets = format!("a: {}", "[".repeat(10_000));
    assert!(matches!(
        parse(&brackets),
        Err(FrontmatterError::Invalid { .. })
    ));
}
