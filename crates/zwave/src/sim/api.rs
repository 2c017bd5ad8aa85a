//! The gateway's API: questions on `api/<function>/set`, answers on the same topic without `/set`.

use serde_json::{Map, Value as Json, json};

use super::dialect::{HOME, HOME_NAME, VERSION};
use super::options::ApiFault;
use super::radio::{Answer, FAIL, Job, Reply, Work};
use super::world::World;
use crate::value::{NodeId, ValueId};

impl World {
    pub(super) fn ask(&mut self, function: &str, origin: Json) {
        let args = match origin.get("args") {
            Some(Json::Array(args)) => json!(args),
            _ => json!([]),
        };
        let reply = Reply {
            function: function.to_owned(),
            args: args.clone(),
            origin,
            kind: Answer::Outcome,
        };
        match self.api {
            ApiFault::Silent => return,
            ApiFault::Refuses => return self.refuse(&reply, "Driver not ready"),
            ApiFault::None => {}
        }
        match function {
            "getNodes" => {
                let nodes = self.all();
                self.answer(Some(reply), Some(nodes));
            }
            "getInfo" => {
                let info = self.info();
                self.answer(Some(reply), Some(info));
            }
            "writeValue" => self.ask_write(reply),
            "pollValue" => self.ask_value(reply),
            "refreshCCValues" => self.ask_class(reply, &args[0], &args[1], Answer::Nothing),
            "sendCommand" if args[1] == "get" => {
                let (node, class) = (&args[0]["nodeId"], &args[0]["commandClass"]);
                self.ask_class(reply, node, class, Answer::Values);
            }
            "pingNode" => match self.known(&args[0]) {
                Some(node) => self.enqueue(Job {
                    node,
                    work: Work::Ping,
                    reply: Some(reply),
                }),
                None => self.answer(Some(reply), Some(json!(false))),
            },
            "_getScenes" => {
                let scenes = self.all_scenes();
                self.answer(Some(reply), Some(scenes));
            }
            "_activateScene" => self.activate(reply),
            "setNodeName" => self.rename(reply, |node, text| node.name = text),
            "setNodeLocation" => self.rename(reply, |node, text| node.location = text),
            _ => self.refuse(&reply, "Unknown API"),
        }
    }

    /// Everything, the controller and the node of all nodes too.
    fn all(&self) -> Json {
        let values = self.broadcast.iter();
        let values = values.map(|value| (value.id.to_string(), value.whole(255).into()));
        let everybody = json!({
            "id": 255, "name": "Broadcast", "virtual": true, "kind": "broadcast",
            "ready": true, "available": true, "failed": false, "inited": true,
            "values": values.collect::<Map<_, _>>(), "eventsQueue": [],
        });
        let nodes = self.nodes.values().map(|node| {
            let mut whole = node.whole();
            if let (true, Some(fields)) = (node.is_controller(), whole.as_object_mut()) {
                fields.remove("values");
            }
            whole
        });
        [everybody].into_iter().chain(nodes).collect()
    }

    fn info(&self) -> Json {
        json!({
            "homeid": HOME, "name": HOME_NAME, "controllerId": 1, "uptime": self.uptime(),
            "status": "scan done", "cntStatus": "Scan completed", "inclusionState": 0,
            "appVersion": VERSION, "zwaveVersion": "15.29.0", "serverVersion": "3.10.2",
        })
    }

    fn all_scenes(&self) -> Json {
        let scenes = self.scenes.iter().map(|scene| {
            let values = scene.writes.iter().map(|write| {
                let mut value = json!({
                    "id": format!("{}-{}", write.node, write.value_id()), "nodeId": write.node,
                    "commandClass": write.command_class, "endpoint": 0,
                    "property": write.property, "value": write.value, "timeout": 0,
                });
                if let Some(key) = &write.key {
                    value["propertyKey"] = json!(key);
                }
                value
            });
            json!({ "sceneid": scene.id, "label": scene.label, "values": values.collect::<Json>() })
        });
        scenes.collect()
    }

    fn ask_write(&mut self, reply: Reply) {
        if reply.args[0].is_null() {
            return self.refuse(
                &reply,
                "Cannot read properties of undefined (reading 'commandClass')",
            );
        }
        match self.value(&reply.args[0]) {
            Some((node, value)) => {
                let wish = reply.args[1].clone();
                self.enqueue(Job {
                    node,
                    work: Work::Write { value, wish },
                    reply: Some(reply),
                });
            }
            None => self.answer(Some(reply), Some(json!({ "status": FAIL }))),
        }
    }

    fn ask_value(&mut self, mut reply: Reply) {
        let Some((node, value)) = self.value(&reply.args[0]) else {
            return self.refuse(&reply, "The value can not be polled");
        };
        reply.kind = Answer::Value(value);
        let rest = vec![vec![value]];
        self.enqueue(Job {
            node,
            work: Work::Read { rest },
            reply: Some(reply),
        });
    }

    /// Reads all values of a command class, each in its own message.
    fn ask_class(&mut self, mut reply: Reply, node: &Json, class: &Json, kind: Answer) {
        reply.kind = kind;
        let Some(id) = self.known(node) else {
            return self.refuse(&reply, "Node not found");
        };
        let class = class.as_u64();
        let values = self.nodes.get(&id).map(|node| {
            let values = node.values.iter().enumerate();
            let values = values.filter(|(_, value)| {
                Some(u64::from(value.id.command_class)) == class
                    && value.real.is_some()
                    && value.id.property != "duration"
            });
            values.map(|(at, _)| vec![at]).collect::<Vec<_>>()
        });
        let rest = values.unwrap_or_default();
        self.enqueue(Job {
            node: id,
            work: Work::Read { rest },
            reply: Some(reply),
        });
    }

    fn activate(&mut self, reply: Reply) {
        let wanted = reply.args[0].as_u64();
        let Some(scene) = self.scenes.iter().find(|scene| Some(scene.id) == wanted) else {
            return self.refuse(&reply, "No scene found with given sceneid");
        };
        let writes = scene.writes.iter().filter_map(|write| {
            let value = self.nodes.get(&write.node)?.index(&write.value_id())?;
            let wish = write.value.clone();
            Some(Job {
                node: write.node,
                work: Work::Write { value, wish },
                reply: None,
            })
        });
        for job in writes.collect::<Vec<_>>() {
            self.enqueue(job);
        }
        self.answer(Some(reply), Some(json!(true)));
    }

    /// Its topics change as its values are next published.
    fn rename(&mut self, reply: Reply, set: impl FnOnce(&mut super::node::Node, String)) {
        let text = reply.args[1].as_str().map(str::to_owned);
        let node = self.known(&reply.args[0]);
        match (node.and_then(|node| self.nodes.get_mut(&node)), text) {
            (Some(node), Some(text)) => {
                set(node, text);
                self.answer(Some(reply), Some(json!(true)));
            }
            _ => self.refuse(&reply, "Invalid Node ID"),
        }
    }

    fn known(&self, node: &Json) -> Option<NodeId> {
        let id = NodeId::try_from(node.as_u64()?).ok()?;
        self.nodes.contains_key(&id).then_some(id)
    }

    fn value(&self, told: &Json) -> Option<(NodeId, usize)> {
        let node = self.known(&told["nodeId"])?;
        let id = ValueId {
            command_class: told["commandClass"].as_u64()?.try_into().ok()?,
            endpoint: told["endpoint"].as_u64().unwrap_or(0).try_into().ok()?,
            property: told["property"].as_str()?.to_owned(),
            key: match &told["propertyKey"] {
                Json::String(key) => Some(key.clone()),
                Json::Number(key) => Some(key.to_string()),
                _ => None,
            },
        };
        Some((node, self.nodes.get(&node)?.index(&id)?))
    }

    pub(super) fn answer(&mut self, reply: Option<Reply>, result: Option<Json>) {
        let Some(reply) = reply else {
            return;
        };
        let mut told = Map::new();
        told.insert("success".to_owned(), json!(true));
        told.insert("message".to_owned(), json!("Success zwave api call"));
        if let Some(result) = result {
            told.insert("result".to_owned(), result);
        }
        told.insert("args".to_owned(), reply.args);
        told.insert("origin".to_owned(), reply.origin);
        self.tell(&reply.function, told);
    }

    pub(super) fn refuse(&mut self, reply: &Reply, message: &str) {
        let mut told = Map::new();
        told.insert("success".to_owned(), json!(false));
        told.insert("message".to_owned(), json!(message));
        told.insert("args".to_owned(), reply.args.clone());
        told.insert("origin".to_owned(), reply.origin.clone());
        self.tell(&reply.function, told);
    }

    fn tell(&mut self, function: &str, told: Map<String, Json>) {
        let topic = format!("_CLIENTS/{}/api/{function}", self.gateway);
        self.publish(&topic, &Json::Object(told), false);
    }
}
