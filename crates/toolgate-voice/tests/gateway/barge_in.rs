//! The wake word interrupts the gateway, and the next words are a request.

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use toolgate_journal::TurnOutcome;
use toolgate_voice::ListenMode;

use crate::model::ModelStep;
use crate::stage::{HANG, TestStage, speech};

/// Ten times what is promised; `voice_stages` of the benchmarks holds the promise itself.
const SILENT_WITHIN: Duration = Duration::from_millis(1500);

/// Half a minute.
const LONG: &str = "Once upon a time there was a gateway that liked to talk, and nobody in the whole house knew how to make it stop. \
    It talked about the weather in the morning and about the lamps at noon. It talked about the doors in the evening, too. \
    And while everybody slept, it told the moon how many steps there are between the cellar and the roof of the house. \
    Then somebody said its name. It was so surprised that it did not say another word until it was asked for one.";

#[tokio::test]
async fn wake_word_stops_the_player_and_the_next_request_is_captured() {
    let folder = tempfile::tempdir().unwrap();
    let stage = TestStage::new([ModelStep::Words(LONG), ModelStep::Words("Good.")]).await;
    let stage = stage.with(|parts, stage| {
        parts.mode = ListenMode::Wake;
        parts.settings.wake = stage.wake.address();
        let folder = folder.path().display();
        let script = "echo $$ >> $1/players; exec cat > /dev/null";
        parts.settings.output = format!("sh -c '{script}' player {folder}");
    });
    let stage = stage.ready().await;
    let players = folder.path().join("players");
    // By a key, because a wake word isn't detected twice within two seconds.
    stage.ask().await;
    stage.sees("state speaking", 1).await;
    until(&players, true, HANG).await.unwrap();

    stage.wake.detect("hey_jarvis");
    let silent = until(&players, false, SILENT_WITHIN).await;
    let silent = silent.expect("it is silent in time");
    tell(silent);
    stage.sees("turn interrupted", 1).await;
    stage.mic.send_sound(&speech());
    stage.sees("turn answered", 1).await;
    let turns = stage.recorder.turns();
    let last = turns.last().unwrap();
    assert_eq!(
        (
            last.outcome,
            last.wake_word.as_deref(),
            last.answer.as_str()
        ),
        (TurnOutcome::Answered, Some("hey_jarvis"), "Good.")
    );
    assert!(LONG.starts_with(&turns[0].answer) && turns[0].answer.len() < LONG.len());
    stage.end().await;
    assert!(!any_lives(&players));
}

/// Waits until a player runs or none does, and returns how long that took.
async fn until(players: &Path, lives: bool, within: Duration) -> Option<Duration> {
    let begun = Instant::now();
    let waiting = async {
        while any_lives(players) != lives {
            sleep(Duration::from_millis(1)).await;
        }
        begun.elapsed()
    };
    timeout(within, waiting).await.ok()
}

/// Counts the players that were started. A zombie is dead.
fn any_lives(players: &Path) -> bool {
    let all = std::fs::read_to_string(players).unwrap_or_default();
    all.lines().any(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, state)| state);
        state.is_some_and(|state| !state.starts_with('Z'))
    })
}

#[expect(clippy::print_stderr, reason = "a measurement, seen with --nocapture")]
fn tell(silent: Duration) {
    eprintln!("from its name to silence: {} ms", silent.as_millis());
}
