//! The environment of programs that record, play and speak: what sound needs, and none of the keys of this program.

use std::ffi::OsString;

const PASSED: &str = "\
DBUS_SESSION_BUS_ADDRESS DISPLAY HOME LANG LOGNAME PATH SHELL TERM TMPDIR TZ USER \
WAYLAND_DISPLAY";

/// Inherited by the beginning of the name: locales, base directories, sound servers, and where voices are.
const PASSED_FAMILIES: &str = "ALSA_ ESPEAK_ JACK_ LC_ PIPEWIRE_ PULSE_ XDG_";

pub(super) fn environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    ours.into_iter()
        .filter(|(name, _)| name.to_str().is_some_and(is_passed))
}

fn is_passed(name: &str) -> bool {
    let mut families = PASSED_FAMILIES.split(' ');
    PASSED.split(' ').any(|known| known == name) || families.any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_what_sound_needs_and_no_keys() {
        for (name, passes) in [
            ("PATH", true),
            ("HOME", true),
            ("LANG", true),
            ("LC_ALL", true),
            ("XDG_RUNTIME_DIR", true),
            ("PULSE_SERVER", true),
            ("PIPEWIRE_REMOTE", true),
            ("ALSA_CARD", true),
            ("ESPEAK_DATA_PATH", true),
            ("DBUS_SESSION_BUS_ADDRESS", true),
            ("OPENAI_API_KEY", false),
            ("TOOLGATE_TOKEN", false),
            ("MQTT_PASSWORD", false),
            ("HOMEASSISTANT_TOKEN", false),
            ("LD_PRELOAD", false),
        ] {
            let ours = [(OsString::from(name), OsString::from("x"))];
            assert_eq!(environment(ours).count() == 1, passes, "{name}");
        }
    }
}
