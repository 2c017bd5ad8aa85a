use jiff::Timestamp;

use super::*;

/// Sunday, five past three in the afternoon in Berlin, half past seven in the evening in Kolkata.
fn now() -> Zoned {
    at("2026-11-15T14:05:09.5Z[UTC]")
}

fn at(text: &str) -> Zoned {
    text.parse().unwrap()
}

fn ask_at(now: Zoned, arguments: Value) -> Result<Value, String> {
    answer(&serde_json::from_value(arguments).unwrap(), now).map_err(|error| error.to_string())
}

fn ask(arguments: Value) -> Result<Value, String> {
    ask_at(now(), arguments)
}

fn sentence(now: Zoned, arguments: Value) -> String {
    ask_at(now, arguments).unwrap()["sentence"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn offset(zone: &str) -> Value {
    ask(json!({ "timezone": zone })).unwrap()["utc_offset"].clone()
}

#[test]
fn now_has_a_sentence_and_fields() {
    assert_eq!(
        ask(json!({ "timezone": "Europe/Berlin" })).unwrap(),
        json!({
            "sentence": "It is 3:05 PM on Sunday, November 15, 2026 in Europe/Berlin.",
            "datetime": "2026-11-15T15:05:09+01:00",
            "date": "2026-11-15",
            "time": "15:05:09",
            "weekday": "Sunday",
            "timezone": "Europe/Berlin",
            "utc_offset": "+01:00",
            "unix": 1_794_751_509,
            "iso_week": "2026-W46",
        })
    );
}

#[test]
fn the_zone_moves_the_day_too() {
    for (now, zone, expected) in [
        (
            "2026-12-31T23:30Z[UTC]",
            "Asia/Kathmandu",
            "It is 5:15 AM on Friday, January 1, 2027 in Asia/Kathmandu.",
        ),
        (
            "2027-01-01T03:00Z[UTC]",
            "America/New_York",
            "It is 10:00 PM on Thursday, December 31, 2026 in America/New_York.",
        ),
        (
            "2028-02-29T00:00Z[UTC]",
            "UTC",
            "It is 12:00 AM on Tuesday, February 29, 2028 in UTC.",
        ),
        (
            "2026-07-01T12:00Z[UTC]",
            "Europe/London",
            "It is 1:00 PM on Wednesday, July 1, 2026 in Europe/London.",
        ),
    ] {
        assert_eq!(sentence(at(now), json!({ "timezone": zone })), expected);
    }
}

#[test]
fn without_a_zone_it_is_the_local_one() {
    let local = at("2026-11-15T15:05+01:00[Europe/Berlin]");
    for arguments in [
        json!({}),
        json!({ "timezone": "" }),
        json!({ "timezone": "local" }),
    ] {
        assert_eq!(
            ask_at(local.clone(), arguments).unwrap()["timezone"],
            "Europe/Berlin"
        );
    }
    let unnamed = at("2026-11-15T15:05+01:00[+01:00]");
    assert_eq!(
        sentence(unnamed.clone(), json!({})),
        "It is 3:05 PM on Sunday, November 15, 2026 here."
    );
    assert_eq!(ask_at(unnamed, json!({})).unwrap()["timezone"], "local");
    let nowhere = now().with_time_zone(TimeZone::unknown());
    assert_eq!(ask_at(nowhere, json!({})).unwrap()["timezone"], "UTC");
}

#[test]
fn a_zone_is_found_by_name_in_any_case_and_by_city() {
    for (given, name) in [
        ("europe/berlin", "Europe/Berlin"),
        ("  Berlin ", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("america/new york", "America/New_York"),
        ("port au prince", "America/Port-au-Prince"),
        ("utc", "UTC"),
        ("US/Eastern", "US/Eastern"),
    ] {
        assert_eq!(ask(json!({ "timezone": given })).unwrap()["timezone"], name);
    }
    // Two names, one place.
    assert_eq!(offset("Istanbul"), "+03:00");
    assert_eq!(offset("Buenos Aires"), "-03:00");
}

#[test]
fn an_unknown_or_ambiguous_zone_is_refused_with_suggestions() {
    for (given, expected) in [
        ("Berlni", "'Europe/Berlin'"),
        ("Europe/Berlni", "'Europe/Berlin'"),
        ("Eastern", "did you mean 'Canada/Eastern' or 'US/Eastern'?"),
        ("../../etc/passwd", "'../../etc/passwd' is not one"),
        ("GMT+25\u{1b}", "is not one"),
    ] {
        let error = ask(json!({ "timezone": given })).unwrap_err();
        let start =
            "Invalid parameters: 'timezone' must be an IANA time zone such as 'Europe/Berlin'; ";
        assert!(
            error.starts_with(start) && error.contains(expected),
            "{error}"
        );
        assert!(
            !error.contains('\u{1b}') && !error.contains("Etc/"),
            "{error}"
        );
    }
}

#[test]
fn the_weekday_of_any_date_is_known() {
    for (date, weekday, week) in [
        ("2026-11-15", "Sunday", "2026-W46"),
        ("2000-02-29", "Tuesday", "2000-W09"),
        ("2027-01-01", "Friday", "2026-W53"),
        ("0001-01-01", "Monday", "0001-W01"),
        ("9999-12-31", "Friday", "9999-W52"),
        // In Berlin it is already the next day.
        ("2026-11-15T23:30Z", "Monday", "2026-W47"),
        ("2026-11-15 23:30", "Sunday", "2026-W46"),
    ] {
        let found =
            ask(json!({ "action": "weekday", "date": date, "timezone": "Europe/Berlin" })).unwrap();
        assert_eq!(
            (&found["weekday"], &found["iso_week"]),
            (&json!(weekday), &json!(week)),
            "{date}"
        );
    }
    assert_eq!(
        sentence(now(), json!({ "action": "weekday" })),
        "November 15, 2026 is a Sunday."
    );
    assert_eq!(
        sentence(now(), json!({ "action": "weekday", "date": "1776-07-04" })),
        "July 4, 1776 was a Thursday."
    );
}

#[test]
fn invalid_dates_are_refused_with_the_reason() {
    for (date, problem) in [
        (
            "2026-02-30",
            "must be a real date: February 2026 has 28 days",
        ),
        (
            "2028-02-30T10:00",
            "must be a real date: February 2028 has 29 days",
        ),
        ("2026-13-01", "must be a real date: there is no month 13"),
        (
            "2026-11-15T25:00",
            "must end in a real time of day like T18:00 or T18:00:30, or end after the date",
        ),
        (
            "15.11.2026",
            "must be a date like 2026-11-15 or a date and time like 2026-11-15T18:00",
        ),
        (
            "tomorrow",
            "must be a date like 2026-11-15 or a date and time like 2026-11-15T18:00",
        ),
        (
            "",
            "must be a date like 2026-11-15 or a date and time like 2026-11-15T18:00",
        ),
        (
            "2026-11-1é",
            "must be a date like 2026-11-15 or a date and time like 2026-11-15T18:00",
        ),
        (
            "2026-11-15T10:00[Mars/Base]",
            "must be a date like 2026-11-15 or a date and time like 2026-11-15T18:00",
        ),
        ("0000-01-01", "must be in the years 1 to 9999"),
        ("9999-12-31T23:00", "must be in the years 1 to 9999"),
    ] {
        let error =
            ask(json!({ "action": "weekday", "date": date, "timezone": "Pacific/Honolulu" }))
                .unwrap_err();
        assert_eq!(error, format!("Invalid parameters: 'date' {problem}"));
    }
}

#[test]
fn a_difference_in_days_has_a_sentence_and_fields() {
    assert_eq!(
        ask(json!({ "action": "difference", "until": "2026-12-24" })).unwrap(),
        json!({
            "sentence": "Thursday, December 24, 2026 is in 39 days (1 month and 9 days).",
            "from": "2026-11-15",
            "until": "2026-12-24",
            "years": 0,
            "months": 1,
            "days": 9,
            "total_days": 39,
        })
    );
}

#[test]
fn a_difference_reads_well_in_both_directions() {
    for (date, until, expected) in [
        (None, "2026-11-15", "Sunday, November 15, 2026 is today."),
        (None, "2026-11-16", "Monday, November 16, 2026 is in 1 day."),
        (
            None,
            "2026-11-05",
            "Thursday, November 5, 2026 was 10 days ago.",
        ),
        (
            None,
            "2026-11-15T14:05:09Z",
            "Sunday, November 15, 2026 at 2:05 PM is now.",
        ),
        (
            None,
            "2026-11-15T14:06",
            "Sunday, November 15, 2026 at 2:06 PM is in 51 seconds.",
        ),
        (
            None,
            "2026-11-14T12:00",
            "Saturday, November 14, 2026 at 12:00 PM was 1 day, 2 hours and 5 minutes ago.",
        ),
        (
            Some("2026-11-15"),
            "2026-11-15",
            "Sunday, November 15, 2026 and Sunday, November 15, 2026 are the same.",
        ),
        (
            Some("2026-12-31"),
            "2027-01-01",
            "It is 1 day from Thursday, December 31, 2026 to Friday, January 1, 2027.",
        ),
        (
            Some("2026-03-01"),
            "2026-02-01",
            "Sunday, February 1, 2026 is 28 days (1 month) before Sunday, March 1, 2026.",
        ),
        (
            Some("2024-02-29"),
            "2028-02-29",
            "It is 1461 days (4 years) from Thursday, February 29, 2024 to Tuesday, February 29, 2028.",
        ),
    ] {
        let mut arguments = json!({ "action": "difference", "until": until });
        if let Some(date) = date {
            arguments["date"] = json!(date);
        }
        assert_eq!(sentence(now(), arguments), expected);
    }
}

#[test]
fn daylight_saving_changes_hours_but_not_days() {
    for (date, until, days, hours, seconds) in [
        // 29 March 2026 has 23 hours in Berlin, 25 October 25.
        ("2026-03-28T12:00", "2026-03-29T12:00", 1, 0, 23 * 3600),
        ("2026-10-24T12:00", "2026-10-25T12:00", 1, 0, 25 * 3600),
        ("2026-03-29T01:00", "2026-03-29T04:00", 0, 2, 2 * 3600),
        ("2026-10-25T01:00", "2026-10-25T04:00", 0, 4, 4 * 3600),
        // 2:30 does not exist that night and is taken as 3:30.
        ("2026-03-29T01:30", "2026-03-29T02:30", 0, 1, 3600),
        // A whole day against a moment counts from its start.
        ("2026-03-29", "2026-03-30T00:00", 1, 0, 23 * 3600),
        ("2026-10-25T12:00", "2026-10-24T12:00", -1, 0, -25 * 3600),
        // Offsets of their own, the same clock time.
        (
            "2026-11-15T12:00Z",
            "2026-11-15T12:00-05:00",
            0,
            5,
            5 * 3600,
        ),
    ] {
        let asked = json!({ "action": "difference", "date": date, "until": until, "timezone": "Europe/Berlin" });
        let found = ask(asked).unwrap();
        let expected = (json!(days), json!(hours), json!(seconds));
        assert_eq!(
            (
                found["total_days"].clone(),
                found["hours"].clone(),
                found["total_seconds"].clone()
            ),
            expected,
            "{date}"
        );
    }
}

#[test]
fn today_is_the_day_of_the_zone() {
    let late = at("2026-11-15T23:30Z[UTC]");
    let asked =
        |zone: &str| json!({ "action": "difference", "until": "2026-12-24", "timezone": zone });
    assert_eq!(
        ask_at(late.clone(), asked("UTC")).unwrap()["total_days"],
        39
    );
    assert_eq!(ask_at(late, asked("Asia/Tokyo")).unwrap()["total_days"], 38);
}

#[test]
fn the_earliest_and_latest_dates_work() {
    let whole = json!({ "action": "difference", "date": "0001-01-01", "until": "9999-12-31" });
    assert_eq!(ask(whole).unwrap()["total_days"], 3_652_058);
    let beyond = json!({ "action": "difference", "date": "2026-11-15T12:00", "until": "9999-12-31", "timezone": "UTC" });
    assert_eq!(
        ask(beyond).unwrap_err(),
        "Invalid parameters: 'until' is too far away"
    );
}

#[test]
fn a_difference_needs_an_end() {
    let error = ask(json!({ "action": "difference" })).unwrap_err();
    assert_eq!(
        error,
        "Invalid parameters: 'until' is needed for a difference: a date like 2026-12-24"
    );
}

#[test]
fn the_real_clock_runs() {
    let unix = answer(
        &DatetimeArguments::default(),
        (DatetimeHandler { now: Zoned::now }.now)(),
    )
    .unwrap()["unix"]
        .as_i64()
        .unwrap();
    assert!((Timestamp::now().as_second() - unix).abs() < 60);
}
