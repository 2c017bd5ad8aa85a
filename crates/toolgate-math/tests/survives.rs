//! No text makes the evaluator panic, and every answer can be formatted.

use proptest::prelude::*;
use toolgate_math::{Budget, evaluate};

/// Evaluates an expression, and formats and drops its answer, like the fuzz target.
fn check_survival(expression: &str) {
    if let Ok(answer) = evaluate(expression, &Budget::default()) {
        let _text = answer.to_string();
        let _json = answer.to_json();
    }
}

/// Pieces of the language, joined at random. Most of the texts have syntax errors, but many don't.
fn pieces() -> impl Strategy<Value = String> {
    let names: Vec<String> = toolgate_math::functions()
        .chain(toolgate_math::constants())
        .map(|(name, ..)| name.to_owned())
        .collect();
    let units: Vec<String> = toolgate_math::units()
        .map(|(name, ..)| name.to_owned())
        .collect();
    let values = [
        "0",
        "1",
        "2",
        "3.5",
        "-1",
        "1e308",
        "1e-308",
        "0.1",
        "100",
        "1e15",
        "2i",
        "(1+2i)",
        "\"a\"",
        "\"2\"",
        "true",
        "null",
        "undefined",
        "NaN",
        "Infinity",
        "[1,2,3]",
        "[1,2;3,4]",
        "[]",
        "[[]]",
        "[[[1]]]",
        "{a:1}",
        "{}",
        "1:3",
        "bignumber(2)",
        "bignumber(\"1e5000\")",
        "bignumber(\"-0.5\")",
        "fraction(1,3)",
        "fraction(-7,2)",
        "5 cm",
        "20 degC",
        "sqrt",
        "x",
        "end",
        "0xff",
        "[\"a\",2i]",
        "[1 m, 2 s]",
        "zeros(3,3)",
        "identity(3)",
    ];
    let operators = [
        "+", "-", "*", "/", "^", "%", "!", "'", ".*", "./", ".^", "==", "!=", "<", ">=", " and ",
        " or ", " xor ", " not ", " to ", " in ", " mod ", "&", "|", "^|", "~", "<<", ">>", ">>>",
        "?", ":", "=", ";", "\n", ",", "(", ")", "[", "]", "{", "}", ".", "?.", "??", " ", "#",
        "f(x)=", "a=", "a", "a[1]", "a.b",
    ];
    let piece = prop_oneof![
        3 => proptest::sample::select(values.to_vec()).prop_map(str::to_owned),
        3 => proptest::sample::select(operators.to_vec()).prop_map(str::to_owned),
        2 => proptest::sample::select(names).prop_map(|name| name + "("),
        1 => proptest::sample::select(units),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Calls of every function with one to four values of every kind.
fn calls() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = toolgate_math::functions().map(|(name, ..)| name).collect();
    let values = [
        "0",
        "1",
        "-1",
        "2",
        "7",
        "0.5",
        "-2.5",
        "1e9",
        "1e300",
        "NaN",
        "Infinity",
        "-Infinity",
        "i",
        "(2-3i)",
        "\"\"",
        "\"abc\"",
        "\"12\"",
        "true",
        "null",
        "undefined",
        "[1,2,3]",
        "[3,1,2]",
        "[1,2;3,4]",
        "[0,0;0,0]",
        "[]",
        "[[],[]]",
        "[[[1,2]]]",
        "[1,2,3;4,5,6]",
        "[i,2]",
        "[\"a\",\"b\"]",
        "[1 m,2 m]",
        "{a:1}",
        "{re:1,im:2}",
        "5 cm",
        "3 deg",
        "m",
        "20 degF",
        "bignumber(0)",
        "bignumber(3)",
        "bignumber(\"-1.5\")",
        "bignumber(\"1e4000\")",
        "fraction(0)",
        "fraction(2,3)",
        "fraction(-5,4)",
        "sqrt",
        "(f(x)=x)",
        "(g(x,y)=y-x)",
        "index(1)",
        "\"asc\"",
        "1:4",
        "zeros(2,0)",
    ];
    let value = proptest::sample::select(values.to_vec());
    (
        proptest::sample::select(names),
        proptest::collection::vec(value, 0..5),
    )
        .prop_map(|(name, values)| format!("{name}({})", values.join(", ")))
}

/// One value of each kind, and numbers that formulas often handle wrongly.
const KINDS: [&str; 26] = [
    "0",
    "1",
    "-2",
    "0.5",
    "1e300",
    "NaN",
    "Infinity",
    "(2 - 3i)",
    "\"\"",
    "\"12\"",
    "true",
    "null",
    "[1, 2, 3]",
    "[1, 2; 3, 4]",
    "[]",
    "{a: 1}",
    "5 cm",
    "m",
    "bignumber(0)",
    "bignumber(3)",
    "bignumber(\"-1e4000\")",
    "fraction(0)",
    "fraction(-5, 4)",
    "sqrt",
    "(f(x) = x)",
    "index(1)",
];

#[test]
fn every_function_survives_every_pair_of_kinds() {
    for (name, ..) in toolgate_math::functions() {
        check_survival(&format!("{name}()"));
        for first in KINDS {
            check_survival(&format!("{name}({first})"));
            for second in KINDS {
                check_survival(&format!("{name}({first}, {second})"));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // `PROPTEST_CASES` runs it for longer.
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(4000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text_is_survived(expression in "\\PC{0,60}") {
        check_survival(&expression);
    }

    #[test]
    fn any_symbols_are_survived(expression in "[-+*/^%!'.,:;?&|~<>=()\\[\\]{}\"#0-9a-fxi \n]{0,60}") {
        check_survival(&expression);
    }

    #[test]
    fn pieces_of_the_language_are_survived(expression in pieces()) {
        check_survival(&expression);
    }

    #[test]
    fn calls_with_any_values_are_survived(expression in calls()) {
        check_survival(&expression);
    }
}
