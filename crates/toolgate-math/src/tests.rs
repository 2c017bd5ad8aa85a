//! Tests the language from outside: answers, JSON, errors, limits. `tests/differential` compares
//! far more of it with mathjs itself.

mod attacks;

use std::time::Duration;

use super::*;

fn answer_text(expression: &str) -> String {
    match evaluate(expression, &Budget::default()) {
        Ok(answer) => answer.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn answers_are_written_as_mathjs_formats_them() {
    let table = [
        ("2 + 3 * 4", "14"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("-2^2", "-4"),
        ("2^3^2", "512"),
        ("7 % 3", "1"),
        ("-5 mod 3", "1"),
        ("100 + 10%", "110"),
        ("100 - 10%", "90"),
        ("8% * 50", "4"),
        ("1/2 pi", "1.5707963267948966"),
        ("20 kg / 4 kg", "5"),
        ("2(3 + 4)", "14"),
        ("100000", "1e+5"),
        ("0.0001", "1e-4"),
        ("0x1F + 0b101 + 0o17", "51"),
        ("0xFFi8", "-1"),
        ("1 < 2 < 3", "true"),
        ("0.1 + 0.2 == 0.3", "true"),
        ("5 ^| 3", "6"),
        ("true ? \"yes\" : \"no\"", "\"yes\""),
        ("f(x) = x^2; f(4)", "[16]"),
        ("a = 3\na * 2", "[3, 6]"),
        ("f(x, y) = x + y", "f(x, y)"),
        ("[1, 2; 3, 4] * [5; 6]", "[[17], [39]]"),
        ("[1, 2; 3, 4]^-1", "[[-2, 1], [1.5, -0.5]]"),
        ("[1, 2; 3, 4]'", "[[1, 3], [2, 4]]"),
        ("10:-3:1", "[10, 7, 4, 1]"),
        ("a = [1, 2, 3]; a[2] = 5; a[end] + a[2]", "[8]"),
        ("a = []; a[3] = 1; a", "[[0, 0, 1]]"),
        ("\"hello\"[end:-1:1]", "\"olleh\""),
        ("{a: {b: 2}}.a.b", "2"),
        ("null ?? 3", "3"),
        ("(2 + 3i) * (1 - i)", "5 + i"),
        ("sqrt(-1)", "i"),
        ("(-8)^(1/3)", "1 + 1.732050807568877i"),
        ("fraction(1, 3) + fraction(1, 6)", "1/2"),
        (
            "bignumber(1) / 3",
            "0.3333333333333333333333333333333333333333333333333333333333333333",
        ),
        (
            "bignumber(2)^0.5",
            "1.414213562373095048801688724209698078569671875376948073176679738",
        ),
        (
            "exp(bignumber(1))",
            "2.718281828459045235360287471352662497757247093699959574966967628",
        ),
        ("2 inch to cm", "5.08 cm"),
        ("5 km / 2 hours", "2.5 km / hours"),
        ("90 km/h to m/s", "25 m / s"),
        ("20 degC to degF", "68 degF"),
        ("5 cm * 3 inch", "5.905511811023621 inch^2"),
        ("3 kW * 4 h", "43.2 MJ"),
        ("10 V / 5 mA", "2 kohm"),
        ("fraction(1, 2) inch to cm", "127/100 cm"),
        ("speedOfLight", "2.99792458e+8 m / s"),
        ("map([1, 2, 3], x^2)", "[1, 4, 9]"),
        ("sort([\"a10\", \"a2\"], \"natural\")", "[\"a2\", \"a10\"]"),
        ("std([1, 2, 3, 4], \"uncorrected\")", "1.118033988749895"),
        (
            "format(1/3, {notation: \"fixed\", precision: 2})",
            "\"0.33\"",
        ),
        ("round(1.005, 2)", "1.01"),
        (
            "f(n) = n <= 1 ? 1 : n * f(n - 1); f(20)",
            "[2432902008176640000]",
        ),
    ];
    for (expression, expected) in table {
        assert_eq!(answer_text(expression), expected, "{expression}");
    }
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let table = [
        ("2+", "Unexpected end of expression (char 3)"),
        ("2+*3", "Value expected (char 3)"),
        ("(2", "Parenthesis ) expected (char 3)"),
        ("2)", "Unexpected operator ) (char 2)"),
        ("2 3", "Unexpected part \"3\" (char 3)"),
        (
            "[1, 2; 3]",
            "Column dimensions mismatch (1 !== 2) (char 10)",
        ),
        ("a @ b", "Syntax error in part \"@ b\" (char 3)"),
        (
            "3 = 4",
            "Invalid left hand side of assignment operator = (char 3)",
        ),
        ("ä + ", "Unexpected end of expression (char 5)"),
        ("sqr(4)", "Undefined function sqr; did you mean sqrt?"),
        ("frobnicate", "Undefined symbol frobnicate"),
        (
            "total = 1; totl + 1",
            "Undefined symbol totl; did you mean total?",
        ),
        (
            "sin(1, 2)",
            "Too many arguments in function sin (expected: 1, actual: 2)",
        ),
        ("5 cm to s", "Units do not match ('s' != 'cm')"),
    ];
    for (expression, expected) in table {
        assert_eq!(
            answer_text(expression),
            format!("error: {expected}"),
            "{expression}"
        );
    }
    assert!(answer_text("random()").contains("no randomness"));
    assert_eq!(
        evaluate("2+", &Budget::default())
            .map_err(|error| error.position())
            .err(),
        Some(Some(3))
    );
}

#[test]
fn json_keeps_integers_and_rejects_values_it_cannot_represent() {
    let json = |expression: &str| match evaluate(expression, &Budget::default())
        .and_then(|answer| answer.to_json())
    {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    };
    let table = [
        ("2 + 2", "4"),
        ("-0", "0"),
        ("1 / 4", "0.25"),
        ("2^53", "9007199254740992"),
        ("1e300", "1e+300"),
        ("[1, 2; 3, 4.5]", "[[1,2],[3,4.5]]"),
        (
            "{b: 1, a: [true, null, \"x\"]}",
            "{\"b\":1,\"a\":[true,null,\"x\"]}",
        ),
        ("2i", "\"2i\""),
        ("5 cm", "\"5 cm\""),
        ("fraction(1, 3)", "\"1/3\""),
        ("a = 3; a * 2", "6"),
        ("1\n2; 3", "[1,3]"),
        (
            "1 / 0",
            "error: The result is Infinity, which JSON can't represent",
        ),
        (
            "[0 / 0]",
            "error: The result is NaN, which JSON can't represent",
        ),
        (
            "sqrt",
            "error: The result is a function, which JSON can't represent; call it with arguments",
        ),
        (
            "1;",
            "error: The expression shows no result; remove the ; behind the last statement",
        ),
    ];
    for (expression, expected) in table {
        assert_eq!(json(expression), expected, "{expression}");
    }
}

#[test]
fn each_exceeded_budget_is_named() {
    let full = Budget::default();
    let table = [
        ("length", Budget { length: 3, ..full }, "1 + 1"),
        ("depth", Budget { depth: 5, ..full }, "((((((1))))))"),
        ("nodes", Budget { nodes: 4, ..full }, "1 + 1 + 1"),
        ("steps", Budget { steps: 600, ..full }, "sum(1:1000)"),
        ("cells", Budget { cells: 99, ..full }, "zeros(10, 10)"),
        ("digits", Budget { digits: 20, ..full }, "fraction(7)^100"),
        (
            "text",
            Budget { text: 9, ..full },
            "concat(\"hello \", \"world\")",
        ),
        (
            "time",
            Budget {
                time: Duration::ZERO,
                ..full
            },
            "sum(1:10000)",
        ),
    ];
    for (limit, budget, expression) in table {
        let error = evaluate(expression, &budget).expect_err(limit);
        assert_eq!(error.limit(), Some(limit), "{error}");
    }
}

#[test]
fn names_are_unique_and_documented() {
    let mut seen = std::collections::HashSet::new();
    for (name, signature, help) in functions().chain(constants()) {
        assert!(seen.insert(name), "{name} stands in two tables");
        assert!(!help.is_empty() && !signature.is_empty(), "{name}");
    }
    let mut units_seen = std::collections::HashSet::new();
    for (name, quantity, _) in units() {
        assert!(units_seen.insert(name), "{name} stands in two rows");
        assert_ne!(quantity, "", "{name}");
        // As in mathjs, a function or constant hides a unit of the same name: min and coulomb.
        if !seen.contains(name) {
            assert_eq!(
                answer_text(&format!("1 {name} to {name}")),
                format!("1 {name}")
            );
        }
    }
}

#[test]
fn every_row_of_the_tables_is_read() {
    let lines = |text: &str| text.lines().count();
    assert_eq!(
        functions().count(),
        lines(include_str!("functions/functions.tsv"))
    );
    assert_eq!(
        constants().count(),
        lines(include_str!("functions/constants.tsv"))
    );
    for (name, ..) in functions().chain(constants()) {
        assert!(crate::functions::find_global(name).is_some(), "{name}");
    }
    let names = include_str!("unit/units.tsv").lines();
    let names = names.flat_map(|row| row.split('\t').next().unwrap().split(' '));
    assert!(crate::units().map(|(name, ..)| name).eq(names));
    let prefixed = include_str!("unit/units.tsv")
        .lines()
        .filter(|row| !row.contains("\tnone"));
    for row in prefixed {
        let name = row.split([' ', '\t']).next().unwrap();
        let unit = crate::units().find(|(known, ..)| *known == name);
        assert_eq!(
            unit.map(|(_, _, prefixes)| prefixes),
            Some("prefixes"),
            "{name}"
        );
    }
}
