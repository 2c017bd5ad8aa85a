//! Finds programs whose sound server is running: an installed program may have none, while
//! the next one does.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::child_program;

pub(crate) fn first_usable<'a>(programs: &[&'a str]) -> Option<&'a str> {
    let is_found = |name: &str| child_program::find_program(name).is_some();
    let found: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|name| is_found(name))
        .collect();
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let served = |name: &&&str| has_server(name, is_found("pulseaudio"), variable);
    found.iter().find(served).or(found.first()).copied()
}

// PulseAudio's tools start their server themselves if it is installed.
fn has_server(
    program: &str,
    is_started: bool,
    variable: impl Fn(&str) -> Option<OsString>,
) -> bool {
    let is_there = |folder: &str, socket: &str| {
        let folder = variable(folder).map(PathBuf::from);
        folder.is_some_and(|folder| folder.join(socket).exists())
    };
    match program {
        "pw-record" | "pw-play" => {
            let name = variable("PIPEWIRE_REMOTE").unwrap_or_else(|| "pipewire-0".into());
            let socket = name.to_string_lossy();
            is_there("PIPEWIRE_RUNTIME_DIR", &socket)
                || is_there("XDG_RUNTIME_DIR", &socket)
                || Path::new("/run/pipewire").join(&*socket).exists()
        }
        "parecord" | "paplay" => {
            is_started
                || variable("PULSE_SERVER").is_some()
                || is_there("PULSE_RUNTIME_PATH", "native")
                || is_there("XDG_RUNTIME_DIR", "pulse/native")
                || Path::new("/run/pulse/native").exists()
        }
        // ALSA needs no server.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_without_its_sound_server_is_skipped() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("pulse")).unwrap();
        for socket in ["pipewire-0", "pulse/native"] {
            std::fs::write(home.path().join(socket), "").unwrap();
        }
        let [full, empty] = [home.path(), Path::new("/no/such/folder")].map(Path::as_os_str);
        for (program, name, value, expected) in [
            ("pw-record", "XDG_RUNTIME_DIR", full, true),
            ("pw-play", "PIPEWIRE_RUNTIME_DIR", full, true),
            ("pw-play", "XDG_RUNTIME_DIR", empty, false),
            ("parecord", "XDG_RUNTIME_DIR", full, true),
            ("paplay", "PULSE_SERVER", "tcp:kitchen".as_ref(), true),
            ("paplay", "XDG_RUNTIME_DIR", empty, false),
            ("arecord", "XDG_RUNTIME_DIR", empty, true),
        ] {
            let variable = |wanted: &str| (wanted == name).then(|| value.to_owned());
            assert_eq!(
                has_server(program, false, variable),
                expected,
                "{program} {name}"
            );
        }
        assert!(
            has_server("paplay", true, |_| None),
            "it starts its server itself"
        );
    }

    #[test]
    fn first_installed_program_is_tried_without_a_server() {
        assert_eq!(first_usable(&["no-such-program", "sh", "env"]), Some("sh"));
        assert_eq!(first_usable(&["no-such-program"]), None);
    }
}
