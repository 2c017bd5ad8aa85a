//! Parses spoken dates: `2026-12-24`, `december 24`, `the 24th of december 2026`, `christmas`.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DateWords {
    pub(crate) months: HashMap<String, i8>,
    /// Named days as month and day: `12-25`.
    pub(crate) days: HashMap<String, String>,
    /// Days relative to today: `tomorrow` is 1.
    pub(crate) from_today: HashMap<String, i32>,
    /// Days of the week, counted from 1 for Monday.
    pub(crate) weekdays: HashMap<String, i8>,
    /// Words before a weekday that change nothing: `next`.
    pub(crate) next: Vec<String>,
    /// Spoken days of a month: `twenty fourth`.
    pub(crate) ordinals: HashMap<String, i8>,
    /// Words between a day and a month: `of`.
    pub(crate) small: Vec<String>,
    /// Suffixes of a day's number: `th`.
    pub(crate) suffixes: Vec<String>,
}

impl DateWords {
    pub(crate) fn merge(&mut self, more: Self) {
        extend_all!(self, more: weekdays, next, ordinals, months, days);
        extend_all!(self, more: from_today, small, suffixes);
    }

    /// Parses the longest date at the start of `words`. Also returns the number of words it takes.
    /// Without a year, the next such day is meant.
    pub(crate) fn parse(&self, words: &[&str], today: Date) -> Option<(Date, usize)> {
        let named = |length: usize| {
            Some((
                self.named_day(&words.get(..length)?.join(" "), today)?,
                length,
            ))
        };
        let written = || {
            let [year, month, day] = words.get(..3)? else {
                return None;
            };
            let date =
                Date::new(four_digits(year)?, month.parse().ok()?, day.parse().ok()?).ok()?;
            Some((date, 3))
        };
        written()
            .or_else(|| self.parse_words(words, today))
            .or_else(|| (1..=3).rev().find_map(named))
            .or_else(|| self.weekday(words, today))
    }

    /// `friday` and `next friday` both mean the first one after today.
    fn weekday(&self, words: &[&str], today: Date) -> Option<(Date, usize)> {
        let is_next = |word: &&&str| self.next.iter().any(|next| next == **word);
        let before = words.iter().take_while(is_next).count();
        let wanted = *self.weekdays.get(*words.get(before)?)?;
        let ahead = (wanted - today.weekday().to_monday_one_offset() - 1).rem_euclid(7) + 1;
        let days = jiff::Span::new().try_days(ahead).ok()?;
        Some((today.checked_add(days).ok()?, before + 1))
    }

    fn named_day(&self, name: &str, today: Date) -> Option<Date> {
        if let Some(days) = self.from_today.get(name) {
            return today
                .checked_add(jiff::Span::new().try_days(i64::from(*days)).ok()?)
                .ok();
        }
        let (month, day) = self.days.get(name)?.split_once('-')?;
        next_occurrence(month.parse().ok()?, day.parse().ok()?, today)
    }

    fn parse_words(&self, words: &[&str], today: Date) -> Option<(Date, usize)> {
        // No spoken date is longer. The limit keeps long sentences as fast as short ones.
        const MAX_DATE_LEN: usize = 8;
        let (mut month, mut day, mut at) = (None, None, 0);
        let mut taken = 0;
        for (index, word) in words.iter().enumerate().take(MAX_DATE_LEN) {
            if index < taken {
                continue;
            }
            let in_words = |length: usize| {
                let phrase = words.get(index..index + length)?.join(" ");
                Some((*self.ordinals.get(&phrase)?, length))
            };
            if let (None, Some((found, length))) = (day, in_words(2).or_else(|| in_words(1))) {
                day = Some(found);
                taken = index + length;
                at = taken;
                continue;
            }
            let number = word.parse::<i8>().ok().filter(|day| (1..=31).contains(day));
            if let (None, Some(found)) = (month, self.months.get(*word)) {
                month = Some(*found);
            } else if let (None, Some(found)) = (day, number) {
                day = Some(found);
            } else if let (Some(month), Some(day), Some(year)) = (month, day, four_digits(word)) {
                return Some((Date::new(year, month, day).ok()?, index + 1));
            } else if self.small.iter().any(|small| small == word) {
                // A trailing small word belongs to what follows, so `at` does not move past it.
                continue;
            } else if !self.suffixes.iter().any(|suffix| suffix == word) {
                break;
            }
            at = index + 1;
        }
        Some((next_occurrence(month?, day?, today)?, at))
    }
}

fn next_occurrence(month: i8, day: i8, today: Date) -> Option<Date> {
    // Around 1900 or 2100 the next February 29 can be eight years away.
    const YEARS_TO_A_LEAP_DAY: i16 = 8;
    let years = today.year()..=today.year() + YEARS_TO_A_LEAP_DAY;
    let days = years.filter_map(|year| Date::new(year, month, day).ok());
    days.into_iter().find(|date| *date >= today)
}

fn four_digits(word: &str) -> Option<i16> {
    word.parse()
        .ok()
        .filter(|year| (1000..=9999).contains(year) && word.len() == 4)
}

#[cfg(test)]
mod tests {
    use super::super::Pack;
    use super::super::words::plain_words;
    use super::*;

    #[test]
    fn spoken_dates_are_parsed() {
        let dates = Pack::english().dates;
        let today = Date::constant(2026, 11, 16);
        for (text, expected, taken) in [
            ("2026-12-24", "2026-12-24", 3),
            ("december 24", "2026-12-24", 2),
            ("December 24th, 2027", "2027-12-24", 4),
            ("the 24th of december 2027", "2027-12-24", 6),
            ("24 December", "2026-12-24", 2),
            ("1st of march", "2027-03-01", 4),
            ("november 16", "2026-11-16", 2),
            ("february 29", "2028-02-29", 2),
            ("christmas", "2026-12-25", 1),
            ("new year's eve", "2026-12-31", 3),
            ("tomorrow", "2026-11-17", 1),
            ("next friday", "2026-11-20", 2),
            ("friday", "2026-11-20", 1),
            ("next monday", "2026-11-23", 2),
            ("december twenty fourth", "2026-12-24", 3),
            ("the twenty fourth of december 2027", "2027-12-24", 6),
            ("first of march", "2027-03-01", 3),
            ("december 24 in tokyo", "2026-12-24", 2),
        ] {
            let words = plain_words(text);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (date, count) = dates.parse(&words, today).unwrap();
            assert_eq!(
                (date.to_string().as_str(), count),
                (expected, taken),
                "{text}"
            );
        }
        for text in [
            "december",
            "24",
            "february 30",
            "2026-13-01",
            "the lamp",
            "",
            "99 december",
        ] {
            let words = plain_words(text);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(dates.parse(&words, today), None, "{text}");
        }
    }
}
