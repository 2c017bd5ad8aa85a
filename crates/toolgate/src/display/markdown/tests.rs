use super::*;

fn plain(text: &str, width: usize) -> String {
    render_markdown(text, width, false)
}

#[test]
fn blocks_become_lines() {
    for (text, expected) in [
        ("one two three", "one two\nthree"),
        ("one\ntwo", "one\ntwo"),
        ("one\n\ntwo", "one\n\ntwo"),
        ("# Title\ntext", "# Title\n\ntext"),
        ("- a\n- b b b b b\n  - c", "• a\n• b b b b\n  b\n  • c"),
        ("3. c\n4. d", "3. c\n4. d"),
        ("- a\n\n- b", "• a\n• b"),
        ("-\n- b", "•\n• b"),
        ("> a\n> b", "│ a\n│ b"),
        (
            "```rust\nlet a = \"long line\";\n```",
            "  let a = \"long line\";",
        ),
        ("a\n***\nb", "a\n\n──────────\n\nb"),
        ("- [x] a\n- [ ] b", "• [x] a\n• [ ] b"),
        ("<b>x</b>", "<b>x</b>"),
        ("", ""),
    ] {
        assert_eq!(plain(text, 10), expected, "{text:?}");
    }
}

#[test]
fn words_are_styled_and_without_colors_keep_what_tells_them_apart() {
    for (text, colored, bare) in [
        ("a **b** c", "a \u{1b}[1mb\u{1b}[0m c", "a b c"),
        (
            "*a **b***",
            "\u{1b}[3ma \u{1b}[1m\u{1b}[3mb\u{1b}[0m\u{1b}[3m\u{1b}[0m",
            "a b",
        ),
        ("`x`", "\u{1b}[36mx\u{1b}[0m", "`x`"),
        ("# T", "\u{1b}[1mT\u{1b}[0m", "# T"),
        (
            "[a](http://h/)",
            "a (\u{1b}[2mhttp://h/\u{1b}[0m)",
            "a (http://h/)",
        ),
        ("<http://h/>", "http://h/", "http://h/"),
        ("2 * 3 * 4", "2 * 3 * 4", "2 * 3 * 4"),
    ] {
        assert_eq!(render_markdown(text, 80, true), colored, "{text}");
        assert_eq!(plain(text, 80), bare, "{text}");
    }
}

#[test]
fn tables_fit_or_stay_source() {
    let table = "| Room | °C |\n|---|---:|\n| Bedroom | 19.4 |\n| Living Room | 21 |";
    let shown = plain(table, 24);
    assert!(
        shown.lines().all(|line| display_width(line) <= 24),
        "{shown}"
    );
    assert!(
        shown.contains("Living Room") && shown.contains("  21"),
        "{shown}"
    );
    let wide = format!(
        "|{}\n|{}\n|{}",
        "a|".repeat(40),
        "-|".repeat(40),
        "b|".repeat(40)
    );
    assert!(
        plain(&wide, 80).starts_with("a | a | a"),
        "{}",
        plain(&wide, 80)
    );
}

#[test]
fn nothing_in_it_drives_the_terminal() {
    let hostile = "&#27;]0;title&#7;x &#x9b;2J &#x202e;y [a](http://h/&#27;[2J) `\u{1b}[31m`\n\n```\n\u{1b}[2J\n```\n\n|a&#27;[1m|\n|-|\n|b|";
    for colors in [true, false] {
        let shown = render_markdown(hostile, 80, colors);
        let left = anstream::adapter::strip_str(&shown).to_string();
        assert!(
            !left.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']),
            "{left:?}"
        );
        assert!(
            !shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}]"),
            "{shown:?}"
        );
    }
}

#[test]
fn depth_and_width_have_bounds() {
    for text in [
        "> ".repeat(3000),
        "> ".repeat(3000) + "x",
        format!("{}x", "- ".repeat(2000)),
        "*".repeat(4000),
        "[".repeat(4000),
        "`".repeat(4001),
        "|a".repeat(2000) + "\n" + &"|-".repeat(2000),
    ] {
        let shown = plain(&text, 20);
        let widest = shown.lines().map(display_width).max().unwrap_or(0);
        assert!(widest <= 8000, "{widest}");
    }
    assert_eq!(
        plain(&format!("{}x", "> ".repeat(100)), 20),
        "│ │ │ │ │ │ x"
    );
}
