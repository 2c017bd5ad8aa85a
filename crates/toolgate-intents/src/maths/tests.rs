use super::super::Pack;

#[test]
fn calculations_are_translated_for_math_eval() {
    let pack = Pack::english();
    for (text, expected) in [
        ("2 plus 2", "2 + 2"),
        ("2+2", "2 + 2"),
        ("two plus twenty one", "2 + 21"),
        ("5 times 7?", "5 * 7"),
        ("5 x 7", "5 * 7"),
        ("5 × 7 − 3", "5 * 7 - 3"),
        ("10 divided by 4", "10 / 4"),
        ("10 percent of 50", "10% * 50"),
        ("12% of 80", "12% * 80"),
        ("100 plus 10 percent", "100 + 10%"),
        ("sqrt 16", "sqrt(16)"),
        ("sqrt(16)", "sqrt(16)"),
        ("the square root of sixteen plus 9", "sqrt(16) + 9"),
        ("√16", "sqrt(16)"),
        ("3 squared", "3^2"),
        ("3 cubed plus 1", "3^3 + 1"),
        ("3²", "3^2"),
        ("2 to the power of 10", "2 ^ 10"),
        ("2^10", "2 ^ 10"),
        ("(1.2 + 3) * 2", "(1.2 + 3) * 2"),
        ("-5 + 3", "-5 + 3"),
        ("minus five plus 3", "-5 + 3"),
        ("5 minus -3", "5 - -3"),
        ("5 minus minus 3", "5 - -3"),
        ("half of 50", "0.5 * 50"),
        ("7 mod 3", "7 mod 3"),
        ("log(8, 2)", "log(8, 2)"),
        ("5 factorial", "5!"),
        ("5!+1", "5! + 1"),
        ("5 feet in inches", "5 ft to inch"),
        ("20 degrees celsius in fahrenheit", "20 degC to degF"),
        ("20°C to °F", "20 degC to degF"),
        ("90 km/h to m/s", "90 km / h to m/s"),
        ("1,000 times 3", "1000 * 3"),
        ("pi", "pi"),
        ("two pi", ""),
        ("5!", "5!"),
        ("100!", "100!"),
        ("(2+3)!", "(2 + 3)!"),
        ("two plus two!", "2 + 2"),
        ("add 5 and 7", "5 + 7"),
        ("subtract 5 from 7", "7 - 5"),
        ("multiply six by seven", "6 * 7"),
        ("divide 10 by 4", "10 / 4"),
        ("the sum of 5 and 7", "5 + 7"),
        ("three quarters of 80", "3 / 4 * 80"),
        ("10 percent off 50", "50 - 10%"),
        ("10% off $50", "50 - 10%"),
        ("one and a half times two", "1.5 * 2"),
        ("2 to the 8th", "2 ^ 8"),
        ("2 to the eighth power", "2^8"),
        ("a 20 percent tip on 45 dollars", "20% * 45"),
        ("1 000 times 3", "1000 * 3"),
        ("1 000 000 plus 5", "1000000 + 5"),
        ("negative five squared", "(-5)^2"),
        ("minus 3 squared", "(-3)^2"),
        ("-5 squared", "-5^2"),
        ("10 minus 3 squared", "10 - 3^2"),
        ("72 f to c", "72 degF to degC"),
        ("100 F in C", "100 degF to degC"),
        ("how many inches in a foot", "1 ft to inch"),
        ("how many inches are there in a foot", "1 ft to inch"),
        ("how many grams in 2 pounds", "2 lb to g"),
        ("sin 90", "sin(90)"),
        (
            "123456789012345678901234567890 plus 1",
            "123456789012345678901234567890 + 1",
        ),
    ] {
        let read = pack.maths.parse(text, &pack.numbers);
        let written = read.map_or(String::new(), |read| read.written);
        assert_eq!(written, expected, "{text}");
    }
}

#[test]
fn other_phrasings_are_understood() {
    let pack = Pack::english();
    for (text, said, unsure) in [
        ("12 percent of 80", Some("12% of 80"), false),
        ("sin 90", Some("sin(90 radians)"), false),
        ("sin 90 degrees", None, false),
        ("negative five squared", None, true),
        ("2 + 2", None, false),
    ] {
        let read = pack.maths.parse(text, &pack.numbers).unwrap();
        assert_eq!(
            (read.said.as_deref(), read.unsure),
            (said, unsure),
            "{text}"
        );
    }
}

#[test]
fn other_texts_are_not_calculations() {
    let pack = Pack::english();
    let deep = format!("1 + {}1", "(".repeat(500));
    for text in [
        "the weather",
        "5",
        "minus 5",
        "five",
        "",
        "plus",
        "2 plus",
        "2 + + x",
        "the time",
        "times",
        "a",
        "x",
        "in",
        "5 apples",
        "2 plus two apples",
        "(2",
        "2)",
        "()",
        "1; import('fs')",
        "a = 3",
        "sqrt",
        "2 in 3",
        "5 cm in lamps",
        "[1, 2]",
        "a 5",
        "5th",
        "5 dollars",
        "5 dollars in euros",
        "add 5",
        "how many inches",
        "how many lamps in a foot",
        &deep,
    ] {
        assert_eq!(pack.maths.parse(text, &pack.numbers), None, "{text}");
    }
}
