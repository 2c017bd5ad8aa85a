//! Reads from the headers when a provider wants to be asked again.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

// Longer delays are useless, and might overflow the clock.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(86_400);

/// The delay from `retry-after-ms` or `retry-after`, at most a day. A date is compared with the
/// server's own clock if the response has one.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    read_retry_after(headers, now).map(|after| after.min(MAX_RETRY_AFTER))
}

fn read_retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let seconds = |text: &str, unit: f64| {
        let number = text.trim().parse::<f64>().ok()?;
        Duration::try_from_secs_f64(number * unit).ok()
    };
    if let Some(after) = text("retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return Some(after);
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Some(after) = seconds(after, 1.0) {
        return Some(after);
    }
    let ours = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let now = text(DATE.as_str())
        .and_then(parse_http_date)
        .unwrap_or(ours.as_secs());
    let then = parse_http_date(after)?;
    Some(Duration::from_secs(then.saturating_sub(now)))
}

// Reads `Sun, 06 Nov 1994 08:49:37 GMT` as seconds since 1970.
fn parse_http_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = fields[..] else {
        return None;
    };
    let month = MONTHS.find(month).filter(|place| place % 3 == 0)? / 3;
    let (day, year) = (day.parse::<u64>().ok()?, year.parse::<u64>().ok()?);
    let mut parts = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let sound = (1970..=9999).contains(&year) && (1..=31).contains(&day);
    if !sound || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Counts years from March on, so that the leap day is the last day of a year.
    let shifted = if month < 2 { year - 1 } else { year };
    let leap_days = shifted / 4 - shifted / 100 + shifted / 400;
    let day_of_year = (153 * ((month as u64 + 10) % 12) + 2) / 5 + day - 1;
    let days = 365 * shifted + leap_days + day_of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    #[test]
    fn retry_after_is_understood_in_all_its_forms() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let seconds = |text: &str| Some(Duration::from_secs_f64(text.parse().unwrap()));
        for (headers, expected) in [
            (vec![("retry-after", "7")], seconds("7")),
            (vec![("retry-after", "0.25")], seconds("0.25")),
            (vec![("retry-after", "0")], seconds("0")),
            (
                vec![("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")],
                seconds("60"),
            ),
            (
                vec![("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")],
                seconds("0"),
            ),
            // The server's clock, not ours.
            (
                vec![
                    ("retry-after", "Thu, 01 Jan 2026 00:00:05 GMT"),
                    ("date", "Wed, 31 Dec 2025 23:59:55 GMT"),
                ],
                seconds("10"),
            ),
            (
                vec![("retry-after-ms", "250"), ("retry-after", "7")],
                seconds("0.25"),
            ),
            (
                vec![("retry-after", "10000000000000000000")],
                seconds("86400"),
            ),
            (
                vec![("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")],
                seconds("86400"),
            ),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "1e300")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "Sun, 99 Nov 1994 08:50:37 GMT")], None),
            (vec![], None),
        ] {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| {
                    let name = reqwest::header::HeaderName::from_static(name);
                    (name, HeaderValue::from_static(value))
                })
                .collect();
            assert_eq!(retry_after(&map, now), expected, "{headers:?}");
        }
    }

    #[test]
    fn dates_are_counted_over_leap_years() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Tue, 29 Feb 2000 00:00:00 GMT", Some(951_782_400)),
            ("Wed, 01 Mar 2000 00:00:00 GMT", Some(951_868_800)),
            ("Fri, 31 Dec 2027 23:59:59 GMT", Some(1_830_297_599)),
            ("Sun, 06 anF 1994 08:49:37 GMT", None),
            ("Sun, 06 Nov 1994 08:49 GMT", None),
            ("Sun, 06 Nov 1994 08:49:37 CET", None),
            ("", None),
        ] {
            assert_eq!(parse_http_date(text), expected, "{text}");
        }
    }
}
