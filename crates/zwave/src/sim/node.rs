//! A simulated node, and how the gateway describes it.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::catalog::{self, CATALOG};
use super::options::DeviceFaults;
use super::plan::{PlannedNode, PlannedPart, SleepMode};
use super::radio::RadioJob;
use super::runner::CommandCount;
use super::value::SimulatedValue;
use crate::device::to_device;
use crate::node::DescribedNode;
use crate::value::{NodeId, ValueId};
use toolgate_home::{DeviceStatus, HomeDevice};

#[derive(Debug)]
pub(super) struct SimulatedNode {
    pub id: NodeId,
    pub name: String,
    pub location: String,
    pub parts: Vec<PlannedPart>,
    pub status: DeviceStatus,
    pub sleeps: Option<Duration>,
    pub values: Vec<SimulatedValue>,
    /// In milliseconds since 1970.
    pub last_active: u64,
    pub faults: DeviceFaults,
    pub count: CommandCount,
    /// The level to which a dimmer returns when turned on.
    pub last_level: u64,
    /// Counted but not reported yet, in kWh.
    pub energy: f64,
    pub waiting: VecDeque<RadioJob>,
}

impl SimulatedNode {
    pub(super) fn new(planned: PlannedNode, wall: u64) -> Self {
        let values = planned.parts.iter().flat_map(catalog::values);
        let mut values = values.chain(catalog::identity()).collect::<Vec<_>>();
        for value in values.iter_mut().filter(|value| !value.undated) {
            value.updated = Some(wall);
        }
        let level = planned.parts.iter().find_map(|part| match part {
            PlannedPart::Dimmer { level } if *level > 0 => Some(u64::from(*level)),
            _ => None,
        });
        Self {
            id: planned.id,
            name: planned.name,
            location: planned.location,
            parts: planned.parts,
            status: match planned.sleep_mode {
                SleepMode::Awake => DeviceStatus::Alive,
                SleepMode::WakesEvery(_) => DeviceStatus::Asleep,
                SleepMode::Dead => DeviceStatus::Dead,
            },
            sleeps: match planned.sleep_mode {
                SleepMode::WakesEvery(seconds) => Some(Duration::from_secs(seconds.max(1).into())),
                _ => None,
            },
            values,
            last_active: wall,
            faults: DeviceFaults {
                dead: planned.sleep_mode == SleepMode::Dead,
                ..DeviceFaults::default()
            },
            count: CommandCount::default(),
            last_level: level.unwrap_or(99),
            energy: 0.0,
            waiting: VecDeque::new(),
        }
    }

    // The controller, which is not a device and never sleeps.
    pub(super) fn controller(wall: u64) -> Self {
        let planned = PlannedNode {
            id: 1,
            name: String::new(),
            location: String::new(),
            parts: Vec::new(),
            sleep_mode: SleepMode::Awake,
        };
        let mut node = Self::new(planned, wall);
        node.values.clear();
        node
    }

    pub(super) fn is_controller(&self) -> bool {
        self.id == 1
    }

    pub(super) fn index(&self, id: &ValueId) -> Option<usize> {
        self.values.iter().position(|value| value.id == *id)
    }

    pub(super) fn find(&self, class: u16, property: &str) -> Option<usize> {
        let mut values = self.values.iter();
        values.position(|value| value.is(class, property))
    }

    pub(super) fn device(&self) -> Option<HomeDevice> {
        let mut description = self.describe();
        let values = self.values.iter().map(|value| {
            let mut known = value.clone();
            known.known.clone_from(&value.real);
            (value.id.to_string(), Json::Object(known.describe(self.id)))
        });
        description.insert("values".to_owned(), values.collect());
        let description =
            serde_json::from_value::<DescribedNode>(Json::Object(description)).ok()?;
        Some(to_device(&description.into_node()?, false))
    }

    pub(super) fn describe_fully(&self) -> Json {
        let mut all = self.describe();
        all.insert("groups".to_owned(), json!([]));
        all.insert("hassDevices".to_owned(), json!({}));
        let values = self.values.iter();
        let values =
            values.map(|value| (value.id.to_string(), Json::Object(value.describe(self.id))));
        all.insert("values".to_owned(), values.collect::<Json>());
        Json::Object(all)
    }

    pub(super) fn describe(&self) -> Map<String, Json> {
        let [basic, generic, specific] = self.device_class();
        let class = json!({ "basic": basic.0, "generic": generic.0, "specific": specific.0 });
        let mut all = CATALOG.node.clone();
        all.extend(object(json!({
            "id": self.id, "name": self.name, "loc": self.location, "status": self.status,
            "available": self.status != DeviceStatus::Dead, "lastActive": self.last_active,
            "endpoints": [{ "index": 0, "label": "Root Endpoint", "deviceClass": class }],
            "deviceClass": class, "isControllerNode": self.is_controller(),
            "isListening": self.sleeps.is_none(),
        })));
        if self.is_controller() {
            all.extend(CATALOG.controller.clone());
        } else {
            all.extend(CATALOG.device.clone());
            let statistics = &mut all["statistics"];
            for counter in ["commandsTX", "commandsRX"] {
                statistics[counter] = json!(self.count.received);
            }
        }
        all
    }

    pub(super) fn summary(&self) -> Json {
        let [basic, generic, specific] = self.device_class();
        let mut all = CATALOG.summary.clone();
        all.extend(object(json!({
            "id": self.id, "status": self.status as u8, "isControllerNode": self.is_controller(),
            "deviceClass": { "basic": basic.1, "generic": generic.1, "specific": specific.1 },
            "isListening": self.sleeps.is_none(), "canSleep": self.sleeps.is_some(),
        })));
        // The real gateway leaves empty texts out here.
        for (key, text) in [("name", &self.name), ("location", &self.location)] {
            if !text.is_empty() {
                all.insert(key.to_owned(), json!(text));
            }
        }
        Json::Object(all)
    }

    /// The basic, generic and specific device class, each as number and name.
    fn device_class(&self) -> [(u8, &'static str); 3] {
        let parts = self.parts.iter();
        let first = parts.min_by_key(|part| matches!(part, PlannedPart::Basic));
        match first.and_then(catalog::device_class) {
            None => [
                (2, "Static Controller"),
                (1, "Remote Controller"),
                (0, "Unused"),
            ],
            Some([generic, specific]) => [(4, "Routing End Node"), generic, specific],
        }
    }
}

pub(super) fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(fields) => fields,
        _ => Map::new(),
    }
}
