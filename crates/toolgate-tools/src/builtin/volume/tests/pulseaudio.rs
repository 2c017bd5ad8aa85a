//! `pactl` against a real PulseAudio with a null sink.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use super::*;

/// A private PulseAudio, which ends when this is dropped.
struct PulseAudio {
    machine: FakeMachine,
    _daemon: Child,
    /// Kept open: the daemon still writes to it.
    _log: Lines<BufReader<ChildStderr>>,
}

impl PulseAudio {
    /// Returns `None` where PulseAudio isn't installed, which fails only in complete test runs.
    async fn start() -> Option<Self> {
        let real = |program| ProgramRunner::default().find(program);
        let (Some(pulseaudio), Some(pactl)) = (real("pulseaudio"), real("pactl")) else {
            thirdparty::skip("pulseaudio and pactl");
            return None;
        };
        let machine = FakeMachine::new(&[]);
        symlink(pactl, machine.path().join("pactl")).unwrap();
        let socket = machine.path().join("native");
        let mut daemon = Command::new(pulseaudio)
            .args([
                "-n",
                "-v",
                "--daemonize=no",
                "--exit-idle-time=-1",
                "--log-target=stderr",
            ])
            .arg("-Lmodule-null-sink sink_name=test")
            .arg(format!(
                "-Lmodule-native-protocol-unix socket={} auth-anonymous=1",
                socket.display()
            ))
            .envs(
                [
                    "HOME",
                    "XDG_RUNTIME_DIR",
                    "XDG_CONFIG_HOME",
                    "PULSE_RUNTIME_PATH",
                ]
                .map(|name| (name, machine.path())),
            )
            .env("LC_ALL", "C")
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut log = BufReader::new(daemon.stderr.take().unwrap()).lines();
        while !log
            .next_line()
            .await
            .unwrap()
            .expect("PulseAudio ended while it started")
            .contains("startup complete")
        {}
        Some(Self {
            machine,
            _daemon: daemon,
            _log: log,
        })
    }

    fn volume(&self) -> SpeakerVolumeHandler {
        let mut volume = self.machine.volume();
        let server = format!("unix:{}", self.machine.path().join("native").display());
        volume.programs.variables.extend([
            ("PULSE_SERVER", server.into()),
            ("HOME", self.machine.path().into()),
        ]);
        volume
    }
}

#[tokio::test]
async fn pactl_supports_all_actions_with_a_real_pulseaudio() {
    let Some(pulseaudio) = PulseAudio::start().await else {
        return;
    };
    let volume = pulseaudio.volume();
    assert_eq!(
        ask(&volume, json!({ "action": "get" })).await.unwrap(),
        at(100)
    );
    ask(&volume, json!({ "action": "set", "level": 40 }))
        .await
        .unwrap();
    check(&volume).await;

    ask(&volume, json!({ "action": "mute" })).await.unwrap();
    assert_eq!(
        ask(&pulseaudio.volume(), json!({ "action": "unmute" }))
            .await
            .unwrap(),
        at(40)
    );
}

#[tokio::test]
async fn calls_at_the_same_time_do_not_lose_each_others_changes() {
    let Some(pulseaudio) = PulseAudio::start().await else {
        return;
    };
    let volume = pulseaudio.volume();
    ask(&volume, json!({ "action": "set", "level": 0 }))
        .await
        .unwrap();
    let louder = || ask(&volume, json!({ "action": "up", "step": 7 }));
    let (a, b, c, d) = tokio::join!(louder(), louder(), louder(), louder());
    assert!(a.is_ok() && b.is_ok() && c.is_ok() && d.is_ok());
    assert_eq!(
        ask(&volume, json!({ "action": "get" })).await.unwrap(),
        at(28)
    );
}
