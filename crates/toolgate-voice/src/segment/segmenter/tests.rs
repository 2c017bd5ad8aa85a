//! The counting, with made-up scores; `sound` uses the real detector.

mod sound;

use super::*;

/// A name, pairs of speech and silence in milliseconds, and the expected notices.
type SegmenterCase = (
    &'static str,
    &'static [(usize, usize)],
    &'static [&'static str],
);

fn always() -> Segmenter {
    Segmenter::new(&VoiceSettings::default(), ArmingMode::Always, None)
}

fn when_woken() -> Segmenter {
    Segmenter::new(
        &VoiceSettings::default(),
        ArmingMode::WhenWoken,
        Some("kitchen".to_owned()),
    )
}

/// Notices as text: `begin`, `over` with a length in milliseconds, or the reason of a drop.
fn describe_notices(notices: &[SegmentNotice]) -> Vec<String> {
    let told = notices.iter().filter_map(|notice| match notice {
        SegmentNotice::Began => Some("began".to_owned()),
        SegmentNotice::Level(_) => None,
        SegmentNotice::Finished(utterance) => {
            Some(format!("over {}", utterance.samples.len() / 16))
        }
        SegmentNotice::Cut(why) => Some(format!("cut: {why}")),
        SegmentNotice::Dropped(why) => Some((*why).to_owned()),
    });
    told.collect()
}

/// Time in a script of scores.
struct ScoreScript {
    segmenter: Segmenter,
    now: Instant,
    notices: Vec<SegmentNotice>,
}

impl ScoreScript {
    fn new(segmenter: Segmenter) -> Self {
        Self {
            segmenter,
            now: Instant::now(),
            notices: Vec::new(),
        }
    }

    fn play(&mut self, speech: bool, milliseconds: usize) {
        for _ in 0..milliseconds / 16 {
            self.now += Duration::from_millis(16);
            let frame = ScoredFrame {
                samples: [i16::from(speech); FRAME_LEN],
                score: if speech { 0.9 } else { 0.1 },
                at: self.now,
            };
            self.segmenter.process_frame(&frame, &mut self.notices);
        }
    }

    fn utterance(&self) -> &Utterance {
        let found = self.notices.iter().find_map(|notice| match notice {
            SegmentNotice::Finished(utterance) => Some(utterance),
            _ => None,
        });
        found.expect("something was said")
    }
}

#[test]
fn speech_starts_and_ends_by_the_settings() {
    // The utterance includes 304 ms of pre-roll and 704 ms of silence.
    let cases: [SegmenterCase; 9] = [
        ("silence", &[(0, 5_000)], &[]),
        ("a cough", &[(240, 2_000)], &[]),
        (
            "clicks",
            &[(64, 240), (64, 240), (64, 240), (64, 240), (64, 2_000)],
            &[],
        ),
        (
            "a sentence",
            &[(0, 480), (1_600, 2_000)],
            &["began", "over 2608"],
        ),
        (
            "one word lasts as long as the shortest request",
            &[(0, 480), (320, 2_000)],
            &["began", "over 1328"],
        ),
        (
            "no pre-roll is there yet",
            &[(1_600, 2_000)],
            &["began", "over 2304"],
        ),
        (
            "a halting sentence",
            &[(0, 480), (400, 640), (400, 640), (400, 2_000)],
            &["began", "over 3488"],
        ),
        (
            "a click does not end the silence",
            &[(0, 480), (800, 400), (48, 2_000)],
            &["began", "over 1856"],
        ),
        (
            "two sentences",
            &[(0, 480), (1_600, 2_000), (800, 2_000)],
            &["began", "over 2608", "began", "over 1808"],
        ),
    ];
    for (name, script, expected) in cases {
        let mut played = ScoreScript::new(always());
        for (speech, silence) in script {
            played.play(true, *speech);
            played.play(false, *silence);
        }
        assert_eq!(describe_notices(&played.notices), expected, "{name}");
    }
}

#[test]
fn overlong_request_is_cut_and_its_rest_ignored() {
    let mut script = ScoreScript::new(always());
    script.play(true, 40_000);
    assert_eq!(describe_notices(&script.notices), ["began", "over 15008"]);
    script.play(false, 400);
    script.play(true, 400);
    assert_eq!(
        describe_notices(&script.notices).len(),
        2,
        "a short pause does not end it"
    );
    script.play(false, 800);
    script.play(true, 800);
    script.play(false, 800);
    let told = describe_notices(&script.notices);
    let cut = format!("cut: {TOO_LONG}");
    assert_eq!(told[2..], [&cut, "began", "over 1808"]);
}

#[test]
fn cut_without_lost_speech_is_not_reported() {
    let mut script = ScoreScript::new(always());
    script.play(true, 15_008);
    script.play(false, 2_000);
    assert_eq!(describe_notices(&script.notices), ["began", "over 15008"]);
}

#[test]
fn speech_without_a_wake_word_is_ignored() {
    let mut script = ScoreScript::new(when_woken());
    script.play(true, 3_000);
    script.play(false, 3_000);
    assert!(describe_notices(&script.notices).is_empty());
}

#[test]
fn wake_word_arms_one_request_and_is_recorded_with_it() {
    let mut script = ScoreScript::new(when_woken());
    script.play(true, 800);
    let heard = script.now;
    assert!(
        script
            .segmenter
            .arm(Some("hey_jarvis".to_owned()), heard)
            .is_empty()
    );
    script.play(false, 480);
    script.play(true, 800);
    script.play(false, 2_000);
    script.play(true, 800);
    script.play(false, 2_000);
    assert_eq!(describe_notices(&script.notices), ["began", "over 1808"]);
    let utterance = script.utterance();
    assert_eq!(utterance.wake_word.as_deref(), Some("hey_jarvis"));
    assert_eq!(utterance.room.as_deref(), Some("kitchen"));
    assert_eq!(utterance.began, heard);
    assert_eq!(
        utterance.ended,
        heard + Duration::from_millis(480 + 800 + 704)
    );
}

#[test]
fn the_end_of_the_wake_word_is_not_part_of_the_request() {
    let mut script = ScoreScript::new(when_woken());
    script.play(true, 800);
    script.segmenter.arm(None, script.now);
    script.play(false, 96);
    script.play(true, 800);
    script.play(false, 2_000);
    // The pre-roll starts after the wake word.
    assert_eq!(describe_notices(&script.notices), ["began", "over 1600"]);
}

#[test]
fn speech_right_after_the_wake_word_is_kept() {
    // Silence and speech before the report of the wake word, and silence after it, in milliseconds.
    for (name, silence, speech, paused, expected, with_name) in [
        // From the quietest place of the last 600 ms, else all of them.
        ("in one breath", 2_000, 1_120, 0, "over 2112", true),
        ("a short pause behind", 2_000, 1_120, 160, "over 2272", true),
        ("a pause within", 2_000, 160, 0, "over 1664", true),
        ("a dip within", 48, 320, 0, "over 1856", true),
        ("a pause behind", 2_000, 1_120, 480, "over 1808", false),
        ("long talk before", 0, 8_000, 0, "over 2112", true),
    ] {
        let mut script = ScoreScript::new(when_woken());
        script.play(true, 320);
        script.play(false, silence);
        script.play(true, speech);
        script
            .segmenter
            .arm(Some("hey_jarvis".to_owned()), script.now);
        assert!(script.segmenter.is_mid_speech(), "{name}");
        script.play(false, paused);
        script.play(true, 800);
        script.play(false, 2_000);
        assert_eq!(
            describe_notices(&script.notices),
            ["began", expected],
            "{name}"
        );
        assert_eq!(script.utterance().in_one_breath, with_name, "{name}");
    }
}

#[test]
fn earlier_speech_is_not_part_of_a_request() {
    let name = || Some("hey_jarvis".to_owned());
    for (case, wake_word, silence) in [
        ("a key", None, 0),
        ("own voice", name(), 0),
        ("a pause", name(), 240),
    ] {
        let mut script = ScoreScript::new(when_woken());
        script.play(true, 1_120);
        script.play(false, silence);
        if case == "own voice" {
            script.segmenter.forget_until(script.now);
        }
        script.segmenter.arm(wake_word, script.now);
        assert!(!script.segmenter.is_mid_speech(), "{case}");
        script.play(true, 800);
        script.play(false, 2_000);
        assert_eq!(
            describe_notices(&script.notices),
            ["began", "over 1504"],
            "{case}"
        );
        assert!(!script.utterance().in_one_breath, "{case}");
    }
}

#[test]
fn speech_during_a_late_wake_report_is_kept() {
    let mut script = ScoreScript::new(when_woken());
    script.play(true, 800);
    let heard = script.now;
    script.play(false, 96);
    script.play(true, 400);
    assert_eq!(
        describe_notices(&script.segmenter.arm(None, heard)),
        ["began"]
    );
    script.play(true, 400);
    script.play(false, 2_000);
    assert_eq!(describe_notices(&script.notices), ["over 1600"]);
}

#[test]
fn wake_word_without_speech_is_reported_once() {
    let mut script = ScoreScript::new(when_woken());
    script.segmenter.arm(None, script.now);
    script.play(false, 4_992);
    assert!(describe_notices(&script.notices).is_empty());
    script.play(false, 10_000);
    script.play(true, 1_000);
    assert_eq!(describe_notices(&script.notices), ["nothing was said"]);
}

#[test]
fn speech_that_starts_at_the_last_moment_is_captured() {
    let mut script = ScoreScript::new(when_woken());
    script.segmenter.arm(None, script.now);
    script.play(false, 4_896);
    script.play(true, 800);
    script.play(false, 2_000);
    assert_eq!(describe_notices(&script.notices), ["began", "over 1808"]);
}

#[test]
fn second_wake_word_restarts_the_request() {
    let mut script = ScoreScript::new(when_woken());
    script.segmenter.arm(Some("one".to_owned()), script.now);
    script.play(true, 1_600);
    script.segmenter.arm(Some("two".to_owned()), script.now);
    script.play(true, 800);
    script.play(false, 2_000);
    // Both wake words are in one breath with the request. Only what follows the last one counts.
    assert_eq!(
        describe_notices(&script.notices),
        ["began", "began", "over 2112"]
    );
    assert_eq!(script.utterance().wake_word.as_deref(), Some("two"));
}

#[test]
fn released_key_ends_the_request_at_once() {
    let mut script = ScoreScript::new(when_woken());
    assert!(script.segmenter.end(script.now).is_empty());
    script.segmenter.arm(None, script.now);
    assert_eq!(
        describe_notices(&script.segmenter.end(script.now)),
        ["nothing was said"]
    );
    script.segmenter.arm(None, script.now);
    script.play(true, 480);
    assert_eq!(
        describe_notices(&script.segmenter.end(script.now)),
        ["over 480"]
    );
    assert!(script.segmenter.end(script.now).is_empty());
}

#[test]
fn reset_forgets_everything() {
    let mut script = ScoreScript::new(always());
    script.play(true, 800);
    script.segmenter.reset();
    script.play(false, 2_000);
    script.play(true, 800);
    script.play(false, 800);
    assert_eq!(
        describe_notices(&script.notices),
        ["began", "began", "over 1808"]
    );
}

#[test]
fn begin_of_speech_without_a_wake_word_is_its_own() {
    let mut script = ScoreScript::new(always());
    script.play(false, 800);
    let began = script.now;
    script.play(true, 800);
    script.play(false, 800);
    assert_eq!(script.utterance().began, began);
}

#[test]
fn ten_thousand_utterances_need_no_more_memory_than_a_hundred() {
    let mut script = ScoreScript::new(always());
    let mut held = None;
    for round in 0..10_000 {
        script.notices.clear();
        script.play(round % 7 != 0, 400);
        script.play(true, 400);
        script.play(false, 960);
        assert_eq!(describe_notices(&script.notices).len(), 2, "round {round}");
        if round % 100 == 99 {
            let Segmenter {
                rest,
                recent,
                samples,
                meter,
                ..
            } = &script.segmenter;
            let holds = [
                rest.capacity(),
                recent.capacity(),
                samples.capacity(),
                meter.capacity(),
            ];
            assert_eq!(*held.get_or_insert(holds), holds, "round {round}");
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn every_request_begins_and_ends_once_and_is_bounded(
        steps in proptest::collection::vec((0..8_u8, 0..2_000_usize), 0..60),
        woken: bool,
    ) {
        let mut script = ScoreScript::new(if woken { when_woken() } else { always() });
        for (kind, milliseconds) in steps {
            match kind {
                0..3 => script.play(true, milliseconds * 4),
                3..5 => script.play(false, milliseconds),
                5 => {
                    let heard = script.now.checked_sub(Duration::from_millis(milliseconds as u64));
                    let name = (milliseconds % 2 == 0).then(|| "hey_jarvis".to_owned());
                    let notices = script.segmenter.arm(name, heard.unwrap_or(script.now));
                    script.notices.extend(notices);
                }
                6 => script.notices.extend(script.segmenter.end(script.now)),
                _ => script.segmenter.reset(),
            }
        }
        let mut begun = false;
        for notice in &script.notices {
            match notice {
                SegmentNotice::Began => begun = true,
                SegmentNotice::Finished(utterance) => {
                    proptest::prop_assert!(begun, "it ended before it began");
                    begun = false;
                    let longest = (938 + script.segmenter.rules.recent) * FRAME_LEN;
                    proptest::prop_assert!(utterance.samples.len() <= longest);
                    proptest::prop_assert!(utterance.began <= utterance.ended);
                }
                SegmentNotice::Level(level) => proptest::prop_assert!((0.0..=1.0).contains(level)),
                SegmentNotice::Cut(_) | SegmentNotice::Dropped(_) => {}
            }
        }
    }
}
