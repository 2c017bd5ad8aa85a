//! The topics of zwave-js-ui, both ways.
//!
//! ```text
//!  zwave/[Kitchen/]Switch_One/switch_binary/endpoint_0/currentValue     named
//!  zwave/[Kitchen/]Switch_One/37/0/currentValue                         by value id, with names
//!  zwave/[Kitchen/]2/37/0/currentValue                                  by value id
//!  └─┬─┘ └────────┬─────────┘ └────────────────┬───────────────────┘
//!  prefix        base                        suffix
//! ```
//!
//! How many levels a base has can not be told from a topic: locations may be switched off, and names may contain `/`.

mod classes;

pub(crate) use classes::{class_name, class_number};

use crate::value::{NodeId, ValueId};

const CLIENTS: &str = "_CLIENTS";
/// Real gateways write the first; the second stands in their documentation.
const EVENTS: [&str; 2] = ["_EVENTS", "_EVENTS_"];
/// What an unnamed node is called, before its number.
pub(crate) const UNNAMED: &str = "nodeID_";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Form {
    /// `switch_binary/endpoint_0/currentValue`
    #[default]
    Named,
    /// `37/0/currentValue`
    Numbered,
}

/// How a gateway is set to write topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Style {
    pub form: Form,
    /// False only in the numbered form: nodes go by their number.
    pub names: bool,
    pub locations: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            form: Form::Named,
            names: true,
            locations: true,
        }
    }
}

impl Style {
    /// Where the topics of a node begin, after the prefix.
    pub(crate) fn base(self, id: NodeId, name: &str, location: &str) -> String {
        let own = match (self.names, name.is_empty()) {
            (false, _) => id.to_string(),
            (true, true) => format!("{UNNAMED}{id}"),
            (true, false) => sanitize(name),
        };
        if self.locations && !location.is_empty() {
            format!("{}/{own}", sanitize(location))
        } else {
            own
        }
    }
}

/// Every base that a node can have, whatever the gateway's settings; the most usual first.
pub(crate) fn bases(id: NodeId, name: &str, location: &str) -> Vec<String> {
    let mut all = Vec::with_capacity(6);
    for names in [true, false] {
        for locations in [true, false] {
            let style = Style {
                form: Form::Named,
                names,
                locations,
            };
            let base = style.base(id, name, location);
            if !all.contains(&base) {
                all.push(base);
            }
        }
    }
    all
}

/// The end of a value's topic. `property_name` is what the gateway shows for the property; named topics are made from it.
pub(crate) fn suffix(form: Form, id: &ValueId, property_name: &str) -> String {
    let property = match form {
        Form::Named => property_name,
        Form::Numbered => &id.property,
    };
    let mut suffix = match form {
        Form::Named => format!("{}/endpoint_{}", class_name(id.command_class), id.endpoint),
        Form::Numbered => format!("{}/{}", id.command_class, id.endpoint),
    };
    for text in [Some(property), id.key.as_deref()].into_iter().flatten() {
        suffix.push('/');
        suffix.extend(part(text));
    }
    suffix
}

/// A suffix, taken apart; property and key as the topic has them, cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suffix<'a> {
    pub form: Form,
    pub command_class: u16,
    pub endpoint: u16,
    pub property: &'a str,
    pub key: Option<&'a str>,
}

impl Suffix<'_> {
    pub(crate) fn is_of(&self, id: &ValueId, property_name: &str) -> bool {
        let property = match self.form {
            Form::Named => property_name,
            Form::Numbered => &id.property,
        };
        (self.command_class, self.endpoint) == (id.command_class, id.endpoint)
            && part(property).eq(self.property.chars())
            && self.key.is_some() == id.key.is_some()
            && part(id.key.as_deref().unwrap_or_default()).eq(self.key.unwrap_or_default().chars())
    }

    /// The value it names, as far as a topic can tell: spaces of a property became `_`.
    pub(crate) fn value_id(&self) -> ValueId {
        ValueId {
            command_class: self.command_class,
            endpoint: self.endpoint,
            property: self.property.to_owned(),
            key: self.key.map(str::to_owned),
        }
    }
}

pub(crate) fn parse_suffix(text: &str) -> Option<Suffix<'_>> {
    let mut parts = text.split('/');
    let (class, endpoint) = (parts.next()?, parts.next()?);
    let (property, key) = (parts.next()?, parts.next());
    if parts.next().is_some() || property.is_empty() || key.is_some_and(str::is_empty) {
        return None;
    }
    let (form, command_class, endpoint) = match endpoint.strip_prefix("endpoint_") {
        Some(endpoint) => (Form::Named, class_number(class)?, number(endpoint)?),
        None => (Form::Numbered, number(class)?, number(endpoint)?),
    };
    Some(Suffix {
        form,
        command_class,
        endpoint,
        property,
        key,
    })
}

/// Splits the topic of a value at the class, looking from the right; for topics of nodes that nobody told us about.
pub(crate) fn split(rest: &str) -> Option<(&str, Suffix<'_>)> {
    rest.rmatch_indices('/')
        .filter_map(|(at, _)| Some((&rest[..at], parse_suffix(&rest[at + 1..])?)))
        // Below 32 there are no classes of devices: such a number is an endpoint or a parameter.
        .find(|(base, suffix)| !base.is_empty() && suffix.command_class >= 32)
}

/// Digits only: `+5` and the like are not what a gateway writes.
fn number(text: &str) -> Option<u16> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// What zwave-js-ui makes of a name: white space becomes `_`, then whatever is neither letter, digit, `-`, `_` nor `/` goes.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars().filter_map(cleaned).collect()
}

fn cleaned(c: char) -> Option<char> {
    match c {
        // As JavaScript counts white space.
        '\u{85}' => None,
        '\u{feff}' => Some('_'),
        c if c.is_whitespace() => Some('_'),
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '/' => Some(c),
        'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ' => Some(c),
        _ => None,
    }
}

/// A property or key, as it stands in a topic.
fn part(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .map(|c| if c == '/' { '-' } else { c })
        .filter_map(cleaned)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About<'a> {
    /// Somebody's command or question, ours too.
    Set,
    GatewayStatus {
        gateway: &'a str,
    },
    GatewayVersion {
        gateway: &'a str,
    },
    Reply {
        gateway: &'a str,
        function: &'a str,
    },
    /// Something happened to `source` (driver, controller, node).
    Event {
        gateway: &'a str,
        source: &'a str,
        event: &'a str,
    },
    DriverStatus,
    /// A node or one of its values: base and the rest, not yet told apart.
    Node {
        rest: &'a str,
    },
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct Topics {
    prefix: String,
}

impl Topics {
    /// Slashes at the ends of the prefix do not count.
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.trim_matches('/').to_owned(),
        }
    }

    pub(crate) fn all(&self) -> String {
        self.whole("#")
    }

    pub(crate) fn whole(&self, rest: &str) -> String {
        format!("{}/{rest}", self.prefix)
    }

    pub(crate) fn question(&self, gateway: &str, function: &str) -> String {
        self.whole(&format!("{CLIENTS}/{gateway}/api/{function}/set"))
    }

    pub(crate) fn about<'a>(&self, topic: &'a str) -> About<'a> {
        let rest = topic
            .strip_prefix(&self.prefix)
            .and_then(|rest| rest.strip_prefix('/'));
        let Some(rest) = rest else {
            return About::Other;
        };
        if rest.ends_with("/set") {
            return About::Set;
        }
        let parts = rest.splitn(4, '/').collect::<Vec<_>>();
        match parts[..] {
            [CLIENTS, gateway, "status"] => About::GatewayStatus { gateway },
            [CLIENTS, gateway, "version"] => About::GatewayVersion { gateway },
            [CLIENTS, gateway, "api", function] => About::Reply { gateway, function },
            [events, gateway, source, event] if EVENTS.contains(&events) => About::Event {
                gateway,
                source,
                event,
            },
            ["driver", "status"] => About::DriverStatus,
            [first, ..] if first == CLIENTS || EVENTS.contains(&first) => About::Other,
            _ => About::Node { rest },
        }
    }
}

#[cfg(test)]
mod tests;
