//! What a model writes, and how it is spoken.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (written, heard) in table {
        assert_eq!(speakable(written), *heard, "{written:?}");
    }
}

#[test]
fn measurements_are_spoken_with_their_units() {
    check(&[
        (
            "The kitchen is 21.5°C.",
            "The kitchen is 21.5 degrees Celsius.",
        ),
        (
            "It's 72°F inside and 65 °F outside",
            "It's 72 degrees Fahrenheit inside and 65 degrees Fahrenheit outside",
        ),
        ("Value: 72.5 F", "Value: 72.5 degrees Fahrenheit"),
        ("It is -5°C.", "It is minus 5 degrees Celsius."),
        (
            "It is −1°C (very cold).",
            "It is minus 1 degree Celsius (very cold).",
        ),
        ("between 20-25°C", "between 20 to 25 degrees Celsius"),
        ("Humidity: 40%", "Humidity: 40 percent"),
        ("dim Hall to 50%.", "dim Hall to 50 percent."),
        ("turned 90° left", "turned 90 degrees left"),
        ("uses 1.2 kWh at 60W", "uses 1.2 kilowatt hours at 60 watts"),
        ("1 kWh", "1 kilowatt hour"),
        ("0.5 A at 230 V", "0.5 amperes at 230 volts"),
        ("Room 5A and room 6 A", "Room 5A and room 6 A"),
        (
            "1013 hPa, wind 12 km/h, 3 m/s, 7 mph",
            "1013 hectopascals, wind 12 kilometers per hour, 3 meters per second, 7 miles per hour",
        ),
        ("PM2.5 is 8 µg/m³", "PM2.5 is 8 micrograms per cubic meter"),
        (
            "420 ppm, 300 lx, 2700 K",
            "420 parts per million, 300 lux, 2700 kelvins",
        ),
        (
            "took 350 ms, not 30s or 5 min",
            "took 350 milliseconds, not 30 seconds or 5 minutes",
        ),
        ("2 h left", "2 hours left"),
        ("5m ago, 5 m away", "5m ago, 5 meters away"),
        ("45 m² and 3 km", "45 square meters and 3 kilometers"),
        (
            "Successfully sent command to turn on Switch_One",
            "Successfully sent command to turn on Switch One",
        ),
        ("15 * 17 = 255", "15 times 17 equals 255"),
        (
            "2^10 = 1024, (1 + 2) * (3) = 9",
            "2 to the power of 10 equals 1024, (1 plus 2) times (3) equals 9",
        ),
        ("It is **7** of *9*", "It is 7 of 9"),
        ("12:00 in Etc/UTC", "12 o'clock in UTC"),
        (
            "The MQTT broker mqtt://127.0.0.1:1883 is not there.",
            "The MQTT broker is not there.",
        ),
        ("see tcp://kitchen.local:10300", "see kitchen.local:10300"),
        ("control_zwave_device", "control zwave device"),
        ("3 in the hall, 5 in all", "3 in the hall, 5 in all"),
        ("Wi-Fi on switch1", "Wi-Fi on switch1"),
    ]);
}

#[test]
fn money_is_spoken_naturally() {
    check(&[
        ("$5", "5 dollars"),
        ("$1", "1 dollar"),
        ("It costs $3.50.", "It costs 3 dollars and 50 cents."),
        ("$1.01", "1 dollar and 1 cent"),
        ("$0.99", "99 cents"),
        ("$20.00", "20 dollars"),
        ("$1,234.56", "1,234 dollars and 56 cents"),
        ("$1.5 million", "1.5 million dollars"),
        ("-$5", "minus 5 dollars"),
        ("€10 or 10 €", "10 euros or 10 euros"),
        ("12,50€", "12,50 euros"),
        ("£2.05", "2 pounds and 5 pence"),
        ("¥500", "500 yen"),
        ("$HOME is $", "HOME is"),
    ]);
}

#[test]
fn times_and_dates_are_spoken_naturally() {
    check(&[
        ("It is 3:05 PM.", "It is 3 oh 5 PM."),
        ("3:00 pm", "3 PM"),
        ("at 9:00", "at 9 o'clock"),
        ("at 15:30", "at 3 30 PM"),
        ("at 00:05", "at 12 oh 5 AM"),
        ("12:15", "12 15"),
        ("07:15:30", "7 15 and 30 seconds"),
        ("11:30 a.m. today", "11 30 AM today"),
        ("on 2026-11-15", "on November 15, 2026"),
        ("2026-11-15T15:30:00Z", "November 15, 2026 at 3 30 PM"),
        ("2026-13-15", "2026-13-15"),
        ("16:9, 24:00, 1:75, 3:1", "16:9, 24:00, 1:75, 3:1"),
        ("call 555-1234", "call 555-1234"),
        ("5–10 minutes", "5 to 10 minutes"),
        ("192.168.1.1", "192.168.1.1"),
        ("version 1.2.3", "version 1.2.3"),
    ]);
}

#[test]
fn markdown_is_stripped_but_its_words_stay() {
    check(&[
        (
            "**On** and *off* and __both__ and _one_ and ~~none~~",
            "On and off and both and one and none",
        ),
        ("***nested `code` in bold***", "nested code in bold"),
        (
            "# Lights\n\n- Kitchen: on\n- Hall: off\n",
            "Lights. Kitchen: on. Hall: off",
        ),
        ("1. Open it\n2. Close it", "1. Open it. 2. Close it"),
        (
            "- [x] Lock the door\n- [ ] Feed the cat",
            "Lock the door. Feed the cat",
        ),
        ("> quoted\n>> twice", "quoted. twice"),
        (
            "| Name | State |\n|------|:-----:|\n| Lamp | on |",
            "Name, State. Lamp, on",
        ),
        ("before\n\n---\n\nafter", "before. after"),
        ("Run:\n```sh\nrm -rf /\n```\nDone.", "Run: Done."),
        ("```\nnever closed", ""),
        ("Use `toolgate list`.", "Use toolgate list."),
        ("2 * 3 = 6, 2*3", "2 times 3 equals 6, 2 times 3"),
        (r"\*not bold\*", "not bold"),
        ("a &amp; b &lt; 5", "a and b less than 5"),
        ("one<br>two <b>three</b>", "one two three"),
        ("no. 5, #3, C++", "no. 5, number 3, C plus plus"),
    ]);
}

#[test]
fn links_are_spoken_as_their_labels() {
    check(&[
        (
            "See [the manual](https://example.com/a?b=c).",
            "See the manual.",
        ),
        ("[**bold** name](<http://x.example>)", "bold name"),
        ("![a cat](cat.png) sits", "a cat sits"),
        ("[![build](badge.svg)](https://ci.example/x)", "build"),
        ("[wiki](https://e.example/Foo_(bar)) ok", "wiki ok"),
        ("[text][ref] done", "text done"),
        (
            "Go to https://www.example.com/path/to?x=1.",
            "Go to example.com.",
        ),
        ("www.example.com", "example.com"),
        (
            "<https://example.com/x> (https://a.example/b)",
            "example.com (a.example)",
        ),
        (
            "[https://example.com/x](https://example.com/x)",
            "example.com",
        ),
        ("It is so.[1] Really[^2]", "It is so. Really"),
        ("https://user:secret@host.example/x", "host.example"),
        ("mail me@example.com", "mail me at example.com"),
        ("[not a link] here", "not a link here"),
        ("[[phonemes]]", "phonemes"),
        ("how with wide", "how with wide"),
    ]);
}

#[test]
fn emoji_and_invisible_characters_are_not_spoken() {
    check(&[
        ("Done! 👍🏽", "Done!"),
        ("👨‍👩‍👧 at home ❤️", "at home"),
        ("🔧 Converted 3 tools", "Converted 3 tools"),
        ("⚠️ Warning ✅", "Warning"),
        ("a\u{0}b\u{200b}c\u{202e}d", "abcd"),
        ("🎉", ""),
        ("---", ""),
        ("", ""),
        (" \n\t ", ""),
        ("…", ""),
        ("“Hello” — it said", "Hello, it said"),
        ("on -> off → on", "on, off, on"),
        (
            "½ cup, 1½ cups, 5²",
            "one half cup, 1 and a half cups, 5 squared",
        ),
        ("≈5 or ~5", "about 5 or about 5"),
        ("on/off 11/15", "on off 11/15"),
        ("Grüße, 日本語。", "Grüße, 日本語。"),
        (
            "token e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 ok",
            "token ok",
        ),
    ]);
}

#[test]
fn text_is_never_an_option_or_a_command() {
    check(&[
        ("-v", "v"),
        ("--help me", "help me"),
        (":-v .-v", "v .-v"),
        ("$(rm -rf /) `id` \"; ls", "(rm, rf ) id; ls"),
    ]);
}

#[test]
fn megabyte_of_text_is_cut_quickly() {
    for seed in [
        "[", "![", "[a](", "<", "<a", "*", "`", "|", "1", "1:", "-1", "$1,", "&", "https://", "a ",
        "🎉", "é", "\n", "# ", "_a",
    ] {
        let hostile = seed.repeat((1 << 20) / seed.len());
        let began = tokio::time::Instant::now();
        let heard = speakable(&hostile);
        assert!(heard.len() <= 20 * MAX_TEXT_BYTES, "{seed}");
        assert!(
            began.elapsed().as_secs() < 10,
            "{seed} takes {:?}",
            began.elapsed()
        );
    }
}

proptest! {
    #[test]
    fn any_text_becomes_one_line_without_marks(text in "[-a-z0-9 \\n*_`~#>|\\[\\]()<>!$€%°:.,/&+é🎉\u{0}]{0,120}") {
        let heard = speakable(&text);
        prop_assert!(!heard.contains(['*', '_', '`', '[', ']', '|', '\n', '\0', '🎉']), "{heard:?}");
        prop_assert!(!heard.contains("  ") && !heard.starts_with('-'), "{heard:?}");
    }
}
