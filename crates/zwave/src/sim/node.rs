//! A simulated node, and how the gateway describes it.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::catalog;
use super::house::Count;
use super::options::Faults;
use super::plan::{PlannedNode, PlannedPart, Rest};
use super::radio::Job;
use super::value::Value;
use crate::device::device;
use crate::node::DescribedNode;
use crate::value::{NodeId, ValueId};
use toolgate_home::{Device, DeviceStatus};

#[derive(Debug)]
pub(super) struct Node {
    pub id: NodeId,
    pub name: String,
    pub location: String,
    pub parts: Vec<PlannedPart>,
    pub status: DeviceStatus,
    /// How long it sleeps, if it does.
    pub sleeps: Option<Duration>,
    pub values: Vec<Value>,
    /// Milliseconds since 1970.
    pub last_active: u64,
    pub faults: Faults,
    pub count: Count,
    /// A dimmer goes to this level when it is told to go on.
    pub last_level: u64,
    /// Counted by the meter and not told yet, in kWh.
    pub energy: f64,
    /// What the gateway sends when the node wakes.
    pub waiting: VecDeque<Job>,
}

impl Node {
    pub(super) fn new(planned: PlannedNode, wall: u64) -> Self {
        let values = planned.parts.iter().flat_map(catalog::values);
        let mut values = values.chain(catalog::identity()).collect::<Vec<_>>();
        for value in values.iter_mut().filter(|value| value.dated) {
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
            status: match planned.rest {
                Rest::Awake => DeviceStatus::Alive,
                Rest::WakesEvery(_) => DeviceStatus::Asleep,
                Rest::Dead => DeviceStatus::Dead,
            },
            sleeps: match planned.rest {
                Rest::WakesEvery(seconds) => Some(Duration::from_secs(seconds.max(1).into())),
                _ => None,
            },
            values,
            last_active: wall,
            faults: Faults {
                dead: planned.rest == Rest::Dead,
                ..Faults::default()
            },
            count: Count::default(),
            last_level: level.unwrap_or(99),
            energy: 0.0,
            waiting: VecDeque::new(),
        }
    }

    /// The controller: no device, and always there.
    pub(super) fn controller(wall: u64) -> Self {
        let planned = PlannedNode {
            id: 1,
            name: String::new(),
            location: String::new(),
            parts: Vec::new(),
            rest: Rest::Awake,
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

    /// How it really is, whatever the gateway knows of it.
    pub(super) fn device(&self) -> Option<Device> {
        let mut told = self.describe();
        let values = self.values.iter().map(|value| {
            let known = Value {
                known: value.real.clone(),
                ..value.clone()
            };
            (value.id.to_string(), Json::Object(known.whole(self.id)))
        });
        told.insert("values".to_owned(), values.collect());
        let told = serde_json::from_value::<DescribedNode>(Json::Object(told)).ok()?;
        Some(device(&told.into_node()?, false))
    }

    /// As in `getNodes`.
    pub(super) fn whole(&self) -> Json {
        let mut all = self.describe();
        all.insert("groups".to_owned(), json!([]));
        all.insert("hassDevices".to_owned(), json!({}));
        let values = self.values.iter();
        let values = values.map(|value| (value.id.to_string(), Json::Object(value.whole(self.id))));
        all.insert("values".to_owned(), values.collect::<Json>());
        Json::Object(all)
    }

    /// As in `nodeinfo`.
    pub(super) fn describe(&self) -> Map<String, Json> {
        let [basic, generic, specific] = self.class();
        let class = json!({ "basic": basic.0, "generic": generic.0, "specific": specific.0 });
        let mut all = object(json!({
            "id": self.id, "name": self.name, "loc": self.location, "neighbors": [],
            "ready": true, "available": self.status != DeviceStatus::Dead, "failed": false, "inited": true,
            "eventsQueue": [], "status": self.status, "interviewStage": "Complete",
            "nodeType": 1, "endpointsCount": 0, "lastActive": self.last_active,
            "endpoints": [{ "index": 0, "label": "Root Endpoint", "deviceClass": class }],
            "deviceClass": class, "isControllerNode": self.is_controller(),
            "isListening": self.sleeps.is_none(), "isFrequentListening": false, "isRouting": true,
        }));
        all.extend(same_for_all());
        if self.is_controller() {
            all.extend(object(json!({
                "nodeType": 0, "sdkVersion": "7.17.99", "rfRegions": [], "supportsLongRange": false,
                "statistics": {
                    "messagesTX": 0, "messagesRX": 0, "messagesDroppedRX": 0, "NAK": 0, "CAN": 0,
                    "timeoutACK": 0, "timeoutResponse": 0, "timeoutCallback": 0, "messagesDroppedTX": 0,
                },
            })));
        } else {
            all.extend(object(json!({
                "prioritySUCReturnRoute": null, "isSecure": false, "security": "None",
                "statistics": {
                    "commandsTX": self.count.heard, "commandsRX": self.count.heard,
                    "commandsDroppedRX": 0, "commandsDroppedTX": 0, "timeoutResponse": 0,
                    "rtt": 72.1, "lastSeen": "2026-11-15T18:08:24.493Z",
                },
            })));
        }
        all
    }

    pub(super) fn summary(&self) -> Json {
        let [basic, generic, specific] = self.class();
        let mut all = object(json!({
            "id": self.id, "inited": true, "status": number(self.status),
            "isControllerNode": self.is_controller(), "interviewStage": 5,
            "deviceClass": { "basic": basic.1, "generic": generic.1, "specific": specific.1 },
            "ready": true, "isListening": self.sleeps.is_none(), "isFrequentListening": false,
            "canSleep": self.sleeps.is_some(), "isRouting": true,
            "supportedDataRates": [40_000, 9_600, 100_000], "maxDataRate": 100_000,
            "supportsSecurity": false, "isSecure": false, "supportsBeaming": true,
            "protocolVersion": 3, "firmwareVersion": "1.0", "manufacturerId": 65535,
            "manufacturer": "_RESERVED_", "productId": 65534, "productDescription": "0xffff",
            "productType": 65535, "productLabel": "Unknown product 0xfffe",
            "deviceDatabaseUrl": "https://devices.zwave-js.io/?jumpTo=0xffff:0xffff:0xfffe:1.0",
            "keepAwake": false, "protocol": 0,
        }));
        // Absent, not empty.
        for (key, text) in [("name", &self.name), ("location", &self.location)] {
            if !text.is_empty() {
                all.insert(key.to_owned(), json!(text));
            }
        }
        Json::Object(all)
    }

    /// Basic, generic and specific device class: number and name.
    fn class(&self) -> [(u8, &'static str); 3] {
        let end = |generic, specific| [(4, "Routing End Node"), generic, specific];
        let first = self.parts.iter();
        let first = first.min_by_key(|part| matches!(part, PlannedPart::Basic));
        match first {
            None => [
                (2, "Static Controller"),
                (1, "Remote Controller"),
                (0, "Unused"),
            ],
            Some(PlannedPart::Dimmer { .. }) => {
                end((17, "Multilevel Switch"), (1, "Multilevel Power Switch"))
            }
            Some(PlannedPart::Sensor { .. }) => {
                end((33, "Multilevel Sensor"), (1, "Routing Multilevel Sensor"))
            }
            Some(PlannedPart::Thermostat { .. }) => {
                end((8, "Thermostat"), (6, "General Thermostat V2"))
            }
            Some(PlannedPart::Lock { .. }) => {
                end((64, "Entry Control"), (3, "Secure Keypad Door Lock"))
            }
            Some(
                PlannedPart::BinarySensor { .. }
                | PlannedPart::MotionAlarm
                | PlannedPart::DoorAlarm { .. },
            ) => end((32, "Binary Sensor"), (1, "Routing Binary Sensor")),
            Some(_) => end((6, "Appliance"), (1, "General Appliance")),
        }
    }
}

fn same_for_all() -> Map<String, Json> {
    object(json!({
        "priorityReturnRoute": {}, "customReturnRoute": {}, "customSUCReturnRoutes": [],
        "applicationRoute": null, "availableFirmwareUpdates": [], "firmwareUpdatesDismissed": {},
        "lastFirmwareUpdateCheck": 0, "appliedTemplateContentHashes": [],
        "hexId": "0xffff 0xffff-0xfffe",
        "dbLink": "https://devices.zwave-js.io/?jumpTo=0xffff:0xffff:0xfffe:0.0",
        "manufacturerId": 65535, "productId": 65534, "productType": 65535,
        "productLabel": "Unknown product 0xfffe", "productDescription": "0xffff",
        "manufacturer": "_RESERVED_", "firmwareVersion": "1.0", "protocolVersion": 3,
        "supportsSecurity": false, "supportsBeaming": true, "keepAwake": true,
        "maxDataRate": 100_000, "firmwareCapabilities": { "firmwareUpgradable": false },
        "protocol": 0, "deviceId": "65535-65534-65535", "hasDeviceConfigChanged": false,
        "interviewProgress": 100, "supportsTime": false,
    }))
}

fn number(status: DeviceStatus) -> u8 {
    match status {
        DeviceStatus::Unknown => 0,
        DeviceStatus::Asleep => 1,
        DeviceStatus::Awake => 2,
        DeviceStatus::Dead => 3,
        DeviceStatus::Alive => 4,
    }
}

fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(fields) => fields,
        _ => Map::new(),
    }
}
