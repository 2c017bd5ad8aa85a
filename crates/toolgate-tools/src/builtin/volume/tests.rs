//! `wpctl` and `amixer` as scripts that keep a state, print what the real programs print, and
//! record how they were called. `pulseaudio` tests `pactl` against the real thing.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use toolgate_core::{Schema, SchemaLimits};

use super::*;

mod custom;
mod pulseaudio;

const WPCTL: &str = r#"#!/bin/sh
[ "$LC_ALL" = C ] || exit 1
echo "wpctl $*" >> "$FAKE/calls"
read -r level < "$FAKE/level"; read -r muted < "$FAKE/muted"
case "$1" in
get-volume)
    printf 'Volume: %d.%02d' $((level / 100)) $((level % 100))
    if [ "$muted" = 1 ]; then echo ' [MUTED]'; else echo; fi ;;
set-volume) echo "${3%\%}" > "$FAKE/level" ;;
set-mute) echo "$3" > "$FAKE/muted" ;;
esac
"#;

const AMIXER: &str = r#"#!/bin/sh
[ "$LC_ALL" = C ] || exit 1
echo "amixer $*" >> "$FAKE/calls"
case "$4" in
mute) echo 1 > "$FAKE/muted" ;;
unmute) echo 0 > "$FAKE/muted" ;;
*%) echo "${4%\%}" > "$FAKE/level" ;;
esac
read -r level < "$FAKE/level"; read -r muted < "$FAKE/muted"
case "$muted" in 0) switch=' [on]' ;; 1) switch=' [off]' ;; *) switch='' ;; esac
cat <<END
Simple mixer control 'Master',0
  Capabilities: pvolume pswitch pswitch-joined
  Playback channels: Front Left - Front Right
  Limits: Playback 0 - 65536
  Mono:
  Front Left: Playback $((level * 65536 / 100)) [$level%]$switch
  Front Right: Playback $((level * 65536 / 100)) [$level%]$switch
END
"#;

/// A folder that is the whole PATH, with the fake programs and their state in it.
struct FakeMachine {
    folder: TempDir,
}

impl FakeMachine {
    fn new(fakes: &[(&str, &str)]) -> Self {
        let machine = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, script) in fakes {
            machine.write("script", script);
            // Another process makes it executable: if this one held it open for writing, a test
            // that starts a program on another thread would keep it busy.
            let installed = std::process::Command::new("install")
                .arg("-m755")
                .args(["script", name])
                .current_dir(machine.path())
                .status();
            assert!(installed.unwrap().success());
        }
        machine.write("calls", "");
        machine
    }

    /// `muted` is 0, 1, or `none` for a mixer without a mute switch.
    fn state(self, level: &str, muted: &str) -> Self {
        self.write("level", &format!("{level}\n"));
        self.write("muted", &format!("{muted}\n"));
        self
    }

    fn volume(&self) -> SpeakerVolumeHandler {
        let folder = self.path().as_os_str().to_owned();
        // The scripts need the usual programs, found after the fakes and without real mixers.
        let path = std::env::join_paths([self.path(), Path::new("/bin")]).unwrap();
        SpeakerVolumeHandler::new(ProgramRunner {
            path: Some(folder.clone()),
            variables: vec![("FAKE", folder), ("PATH", path)],
        })
    }

    fn calls(&self) -> Vec<String> {
        fs::read_to_string(self.path().join("calls"))
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).unwrap();
    }
}

async fn ask(volume: &SpeakerVolumeHandler, arguments: Value) -> Result<Value, ToolError> {
    let schema = Schema::compile(parameters(), &SchemaLimits::default()).unwrap();
    volume
        .answer(&schema.check(arguments)?.parse()?, "volume")
        .await
}

fn at(level: u32) -> Value {
    json!({ "sentence": format!("The volume is {level} %."), "level": level, "muted": false })
}

fn muted(level: u32) -> Value {
    let sentence = format!("The sound is muted; unmuting brings it back to {level} %.");
    json!({ "sentence": sentence, "level": 0, "muted": true, "level_when_unmuted": level })
}

/// One dialogue that every mixer must handle in the same way, starting at 40
/// %: requests and answers.
fn conversation() -> Vec<(Value, Value)> {
    vec![
        (json!({ "action": "get" }), at(40)),
        (json!({ "action": "set", "level": 1 }), at(1)),
        (json!({ "action": "set", "level": 55.0 }), at(55)),
        (json!({ "action": "up" }), at(65)),
        (json!({ "action": "down", "step": 5 }), at(60)),
        (json!({ "action": "mute" }), muted(60)),
        (json!({ "action": "mute" }), muted(60)),
        (json!({ "action": "get" }), muted(60)),
        (json!({ "action": "down" }), muted(60)),
        (json!({ "action": "unmute" }), at(60)),
        (json!({ "action": "unmute" }), at(60)),
        (json!({ "action": "mute" }), muted(60)),
        (json!({ "action": "set", "level": 30 }), at(30)),
        (json!({ "action": "mute" }), muted(30)),
        (json!({ "action": "up" }), at(40)),
        (json!({ "action": "up", "step": 100 }), at(100)),
        (json!({ "action": "up" }), at(100)),
        (json!({ "action": "down", "step": 100 }), at(0)),
        (json!({ "action": "down" }), at(0)),
        (json!({ "action": "unmute" }), at(0)),
        (json!({ "action": "set", "level": 40 }), at(40)),
    ]
}

async fn check(volume: &SpeakerVolumeHandler) {
    for (arguments, expected) in conversation() {
        let answer = ask(volume, arguments.clone()).await.unwrap();
        assert_eq!(answer, expected, "{arguments}");
    }
}

#[tokio::test]
async fn wpctl_and_amixer_support_all_actions() {
    for (fake, no_switch) in [
        (("wpctl", WPCTL), false),
        (("amixer", AMIXER), false),
        (("amixer", AMIXER), true),
    ] {
        let machine = FakeMachine::new(&[fake]).state("40", if no_switch { "none" } else { "0" });
        check(&machine.volume()).await;
    }
}

#[tokio::test]
async fn each_program_gets_its_own_commands() {
    let steps = [
        json!({ "action": "set", "level": 1 }),
        json!({ "action": "mute" }),
        json!({ "action": "set", "level": 20 }),
    ];
    for (fake, expected) in [
        (
            ("wpctl", WPCTL),
            vec![
                "wpctl set-volume @DEFAULT_AUDIO_SINK@ 1%",
                "wpctl set-mute @DEFAULT_AUDIO_SINK@ 1",
                "wpctl set-volume @DEFAULT_AUDIO_SINK@ 20%",
                "wpctl set-mute @DEFAULT_AUDIO_SINK@ 0",
            ],
        ),
        (
            ("amixer", AMIXER),
            vec![
                "amixer -M sset Master 1%",
                "amixer -M sset Master mute",
                "amixer -M sset Master 20%",
                "amixer -M sset Master unmute",
            ],
        ),
    ] {
        let machine = FakeMachine::new(&[fake]).state("40", "0");
        let volume = machine.volume();
        for step in &steps {
            ask(&volume, step.clone()).await.unwrap();
        }
        let changes: Vec<String> = machine
            .calls()
            .into_iter()
            .filter(|call| call.contains("set-") || call.contains("sset"))
            .collect();
        assert_eq!(changes, expected);
    }
}

#[tokio::test]
async fn a_muted_level_outlives_the_process() {
    let machine = FakeMachine::new(&[("wpctl", WPCTL)]).state("40", "0");
    ask(&machine.volume(), json!({ "action": "mute" }))
        .await
        .unwrap();
    assert_eq!(
        ask(&machine.volume(), json!({ "action": "unmute" }))
            .await
            .unwrap(),
        at(40)
    );
}

#[tokio::test]
async fn an_amplified_level_is_reported_and_lowered_to_100() {
    let machine = FakeMachine::new(&[("wpctl", WPCTL)]).state("150", "0");
    assert_eq!(
        ask(&machine.volume(), json!({ "action": "get" }))
            .await
            .unwrap(),
        at(150)
    );
    assert_eq!(
        ask(&machine.volume(), json!({ "action": "down" }))
            .await
            .unwrap(),
        at(100)
    );
}

#[tokio::test]
async fn the_first_mixer_that_works_is_used() {
    let broken = "#!/bin/sh\necho 'Could not connect to PipeWire' >&2\nexit 69\n";
    let odd = "#!/bin/sh\necho 'Volume: plenty'\n";
    for fakes in [
        [("wpctl", WPCTL), ("amixer", broken)],
        [("wpctl", broken), ("amixer", AMIXER)],
        [("wpctl", odd), ("amixer", AMIXER)],
    ] {
        let machine = FakeMachine::new(&fakes).state("40", "0");
        assert_eq!(
            ask(&machine.volume(), json!({ "action": "get" }))
                .await
                .unwrap(),
            at(40)
        );
    }
}

#[tokio::test]
async fn without_a_mixer_it_says_what_to_install() {
    let error = ask(&FakeMachine::new(&[]).volume(), json!({ "action": "get" }))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "The volume service is currently unavailable: this machine has no program to set the volume; install wireplumber (wpctl), \
         pulseaudio-utils (pactl) or alsa-utils (amixer)"
    );
}

#[tokio::test]
async fn without_speakers_it_says_so_and_tells_the_operator_why() {
    let flood = "#!/bin/sh\nwhile echo 'Volume: 0.40'; do :; done\n";
    let refuses = "#!/bin/sh\necho 'no such control' >&2\nexit 1\n";
    let error = ask(
        &FakeMachine::new(&[("wpctl", flood), ("amixer", refuses)]).volume(),
        json!({ "action": "get" }),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "The volume service is currently unavailable: no speakers were found; is a sound server running, and an output connected?"
    );
    assert_eq!(
        error.details(),
        Some("wpctl: too much output\namixer: exit status: 1: no such control")
    );
}

#[tokio::test(start_paused = true)]
async fn a_hung_mixer_is_given_up() {
    let hung = "#!/bin/sh\nexec sleep 600\n";
    let error = ask(
        &FakeMachine::new(&[("wpctl", hung)]).volume(),
        json!({ "action": "get" }),
    )
    .await
    .unwrap_err();
    assert_eq!(error.details(), Some("wpctl: no answer within 3 s"));
}

#[tokio::test]
async fn a_failed_change_is_an_error() {
    let stuck = "#!/bin/sh\n[ \"$1\" = get-volume ] && echo 'Volume: 0.40' || { echo 'access denied' >&2; exit 1; }\n";
    let error = ask(
        &FakeMachine::new(&[("wpctl", stuck)]).volume(),
        json!({ "action": "mute" }),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "The volume service is currently unavailable: the volume could not be changed; try again"
    );
    assert_eq!(
        error.details(),
        Some("wpctl: exit status: 1: access denied")
    );
}

#[tokio::test]
async fn set_needs_a_level() {
    let machine = FakeMachine::new(&[("wpctl", WPCTL)]).state("40", "0");
    let error = ask(&machine.volume(), json!({ "action": "set" }))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Invalid parameters: 'level' is needed to set the volume: a percentage from 0 to 100"
    );
    assert_eq!(machine.calls(), [""; 0]);
}
