//! The names that zwave-js-ui gives to command classes in topics.

use std::borrow::Cow;

/// Numbers in rising order.
const CLASSES: [(u16, &str); 91] = [
    (0, "no_operation"),
    (32, "basic"),
    (33, "controller_replication"),
    (34, "application_status"),
    (35, "zip_services"),
    (36, "zip_server"),
    (37, "switch_binary"),
    (38, "switch_multilevel"),
    (39, "switch_all"),
    (40, "switch_toggle_binary"),
    (41, "switch_toggle_multilevel"),
    (42, "chimney_fan"),
    (43, "scene_activation"),
    (44, "scene_actuator_conf"),
    (45, "scene_controller_conf"),
    (46, "zip_client"),
    (47, "zip_adv_services"),
    (48, "sensor_binary"),
    (49, "sensor_multilevel"),
    (50, "meter"),
    (51, "color"),
    (52, "zip_adv_client"),
    (53, "meter_pulse"),
    (56, "thermostat_heating"),
    (60, "meter_tbl_config"),
    (61, "meter_tbl_monitor"),
    (62, "meter_tbl_pulse"),
    (64, "thermostat_mode"),
    (66, "thermostat_operating_state"),
    (67, "thermostat_setpoint"),
    (68, "thermostat_fan_mode"),
    (69, "thermostat_fan_state"),
    (70, "climate_control_schedule"),
    (71, "thermostat_setback"),
    (76, "door_lock_logging"),
    (78, "schedule_entry_lock"),
    (80, "basic_window_covering"),
    (81, "mtp_window_covering"),
    (86, "crc16_encap"),
    (90, "device_reset_locally"),
    (91, "central_scene"),
    (93, "antitheft"),
    (94, "zwave_plus_info"),
    (96, "multi_instance"),
    (98, "door_lock"),
    (99, "user_code"),
    (102, "barrier_operator"),
    (112, "configuration"),
    (113, "notification"),
    (114, "manufacturer_specific"),
    (115, "powerlevel"),
    (117, "protection"),
    (118, "lock"),
    (119, "node_naming"),
    (121, "sound_switch"),
    (122, "firmware_update_md"),
    (123, "grouping_name"),
    (124, "remote_association_activate"),
    (125, "remote_association"),
    (128, "battery"),
    (129, "clock"),
    (130, "hail"),
    (132, "wake_up"),
    (133, "association"),
    (134, "version"),
    (135, "indicator"),
    (136, "proprietary"),
    (137, "language"),
    (138, "time"),
    (139, "time_parameters"),
    (140, "geographic_location"),
    (141, "composite"),
    (142, "multi_instance_association"),
    (143, "multi_cmd"),
    (144, "energy_production"),
    (145, "manufacturer_proprietary"),
    (146, "screen_md"),
    (147, "screen_attributes"),
    (148, "simple_av_control"),
    (149, "av_content_directory_md"),
    (150, "av_renderer_status"),
    (151, "av_content_search_md"),
    (152, "security"),
    (153, "av_tagging_md"),
    (154, "ip_configuration"),
    (155, "association_command_configuration"),
    (156, "sensor_alarm"),
    (157, "silence_alarm"),
    (158, "sensor_configuration"),
    (239, "mark"),
    (240, "non_interoperable"),
];

const UNKNOWN: &str = "unknownClass_";

/// Such as `switch_binary` for 37.
pub(crate) fn class_name(number: u16) -> Cow<'static, str> {
    match CLASSES.binary_search_by_key(&number, |(known, _)| *known) {
        Ok(found) => Cow::Borrowed(CLASSES[found].1),
        Err(_) => Cow::Owned(format!("{UNKNOWN}{number}")),
    }
}

/// Such as 37 for `switch_binary`.
pub(crate) fn class_number(name: &str) -> Option<u16> {
    if let Some(number) = name.strip_prefix(UNKNOWN) {
        return number.parse().ok();
    }
    CLASSES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_one_name_and_one_number() {
        assert!(CLASSES.is_sorted_by_key(|(number, _)| *number));
        for (number, name) in CLASSES {
            assert_eq!(class_name(number), name);
            assert_eq!(class_number(name), Some(number));
        }
    }

    #[test]
    fn a_class_without_a_name_is_called_by_its_number() {
        assert_eq!(class_name(159), "unknownClass_159");
        assert_eq!(class_number("unknownClass_159"), Some(159));
        for none in ["", "switch", "unknownClass_", "unknownClass_x", "37"] {
            assert_eq!(class_number(none), None, "{none}");
        }
    }
}
