//! Builds and parses the topics of zwave-js-ui.
//!
//! ```text
//!  zwave/[Kitchen/]Switch_One/switch_binary/endpoint_0/currentValue     named
//!  zwave/[Kitchen/]Switch_One/37/0/currentValue                         by value id, with names
//!  zwave/[Kitchen/]2/37/0/currentValue                                  by value id
//!  └─┬─┘ └────────┬─────────┘ └────────────────┬───────────────────┘
//!  prefix        base                        suffix
//! ```
//!
//! The number of levels in a base can't be told from a topic: locations may be disabled, and
//! names may contain `/`.

mod classes;

pub(crate) use classes::{class_name, class_number};

use crate::value::{NodeId, ValueId};

const CLIENTS: &str = "_CLIENTS";
/// Real gateways use the first; their documentation has the second.
const EVENTS: [&str; 2] = ["_EVENTS", "_EVENTS_"];
pub(crate) const UNNAMED_PREFIX: &str = "nodeID_";

/// The form of the topics that zwave-js-ui publishes values to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TopicForm {
    /// `switch_binary/endpoint_0/currentValue`
    #[default]
    Named,
    /// `37/0/currentValue`
    ValueId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TopicStyle {
    pub form: TopicForm,
    /// False if topics have node numbers instead of names, only in the numbered form.
    pub names: bool,
    pub locations: bool,
}

impl Default for TopicStyle {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl TopicStyle {
    /// All settings that change the base of a topic, the most common first.
    pub(crate) const ALL: [Self; 4] = [
        Self::named(true, true),
        Self::named(true, false),
        Self::named(false, true),
        Self::named(false, false),
    ];

    const fn named(names: bool, locations: bool) -> Self {
        Self {
            form: TopicForm::Named,
            names,
            locations,
        }
    }

    pub(crate) fn base(self, id: NodeId, name: &str, location: &str) -> String {
        let own = match (self.names, name.is_empty()) {
            (false, _) => id.to_string(),
            (true, true) => format!("{UNNAMED_PREFIX}{id}"),
            (true, false) => sanitize(name),
        };
        if self.locations && !location.is_empty() {
            format!("{}/{own}", sanitize(location))
        } else {
            own
        }
    }
}

/// The end of a value's topic. Named topics are built from `property_name`, the gateway's
/// name for the property.
pub(crate) fn value_suffix(form: TopicForm, id: &ValueId, property_name: &str) -> String {
    let property = match form {
        TopicForm::Named => property_name,
        TopicForm::ValueId => &id.property,
    };
    let mut suffix = match form {
        TopicForm::Named => format!("{}/endpoint_{}", class_name(id.command_class), id.endpoint),
        TopicForm::ValueId => format!("{}/{}", id.command_class, id.endpoint),
    };
    for text in [Some(property), id.key.as_deref()].into_iter().flatten() {
        suffix.push('/');
        suffix.extend(clean_part(text));
    }
    suffix
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValueSuffix<'a> {
    pub form: TopicForm,
    pub command_class: u16,
    pub endpoint: u16,
    pub property: &'a str,
    pub key: Option<&'a str>,
}

impl ValueSuffix<'_> {
    pub(crate) fn matches(&self, id: &ValueId, property_name: &str) -> bool {
        let property = match self.form {
            TopicForm::Named => property_name,
            TopicForm::ValueId => &id.property,
        };
        (self.command_class, self.endpoint) == (id.command_class, id.endpoint)
            && clean_part(property).eq(self.property.chars())
            && self.key.is_some() == id.key.is_some()
            && clean_part(id.key.as_deref().unwrap_or_default())
                .eq(self.key.unwrap_or_default().chars())
    }

    // The value that it names. Inexact, because spaces of a property became `_`.
    pub(crate) fn value_id(&self) -> ValueId {
        ValueId {
            command_class: self.command_class,
            endpoint: self.endpoint,
            property: self.property.to_owned(),
            key: self.key.map(str::to_owned),
        }
    }
}

pub(crate) fn parse_suffix(text: &str) -> Option<ValueSuffix<'_>> {
    let mut parts = text.split('/');
    let (class, endpoint) = (parts.next()?, parts.next()?);
    let (property, key) = (parts.next()?, parts.next());
    if parts.next().is_some() || property.is_empty() || key.is_some_and(str::is_empty) {
        return None;
    }
    let (form, command_class, endpoint) = match endpoint.strip_prefix("endpoint_") {
        Some(endpoint) => (TopicForm::Named, class_number(class)?, endpoint),
        None => (TopicForm::ValueId, parse_number(class)?, endpoint),
    };
    Some(ValueSuffix {
        form,
        command_class,
        endpoint: parse_number(endpoint)?,
        property,
        key,
    })
}

// Splits a value's topic at the class, from the right, because a name may look like a class.
pub(crate) fn split_topic(rest: &str) -> Option<(&str, ValueSuffix<'_>)> {
    rest.rmatch_indices('/')
        .filter_map(|(at, _)| Some((&rest[..at], parse_suffix(&rest[at + 1..])?)))
        // Device classes start at 32: a smaller number is an endpoint or a parameter.
        .find(|(base, suffix)| !base.is_empty() && suffix.command_class >= 32)
}

/// `parse` alone would accept `+5`, which no gateway writes.
fn parse_number(text: &str) -> Option<u16> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Cleans a name as zwave-js-ui does: whitespace becomes `_`, and everything but letters, digits,
/// `-`, `_` and `/` is removed.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars().filter_map(clean_char).collect()
}

fn clean_char(c: char) -> Option<char> {
    match c {
        // JavaScript's notion of whitespace differs from Rust's in these two.
        '\u{85}' => None,
        '\u{feff}' => Some('_'),
        c if c.is_whitespace() => Some('_'),
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '/' => Some(c),
        'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ' => Some(c),
        _ => None,
    }
}

fn clean_part(text: &str) -> impl Iterator<Item = char> {
    text.chars()
        .map(|c| if c == '/' { '-' } else { c })
        .filter_map(clean_char)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopicSubject<'a> {
    /// A command or request, by us or by others.
    Set,
    /// With the gateway's name, as in the next three.
    GatewayStatus(&'a str),
    GatewayVersion(&'a str),
    /// With the function of the API.
    Reply(&'a str, &'a str),
    /// With the source (driver, controller, node) and the event.
    Event(&'a str, &'a str, &'a str),
    DriverStatus,
    /// A node or one of its values; base and suffix are not yet separated.
    Node(&'a str),
    Other,
}

#[derive(Debug, Clone)]
pub(crate) struct HomeTopics {
    prefix: String,
}

impl HomeTopics {
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.trim_matches('/').to_owned(),
        }
    }

    pub(crate) fn subscription_filter(&self) -> String {
        self.with_prefix("#")
    }

    pub(crate) fn with_prefix(&self, rest: &str) -> String {
        format!("{}/{rest}", self.prefix)
    }

    pub(crate) fn request(&self, gateway: &str, function: &str) -> String {
        self.with_prefix(&format!("{CLIENTS}/{gateway}/api/{function}/set"))
    }

    pub(crate) fn subject<'a>(&self, topic: &'a str) -> TopicSubject<'a> {
        let rest = topic.strip_prefix(&self.prefix);
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix('/')) else {
            return TopicSubject::Other;
        };
        if rest.ends_with("/set") {
            return TopicSubject::Set;
        }
        let parts = rest.splitn(4, '/').collect::<Vec<_>>();
        match parts[..] {
            [CLIENTS, gateway, "status"] => TopicSubject::GatewayStatus(gateway),
            [CLIENTS, gateway, "version"] => TopicSubject::GatewayVersion(gateway),
            [CLIENTS, gateway, "api", function] => TopicSubject::Reply(gateway, function),
            [events, gateway, source, event] if EVENTS.contains(&events) => {
                TopicSubject::Event(gateway, source, event)
            }
            ["driver", "status"] => TopicSubject::DriverStatus,
            [first, ..] if first == CLIENTS || EVENTS.contains(&first) => TopicSubject::Other,
            _ => TopicSubject::Node(rest),
        }
    }
}

#[cfg(test)]
mod tests;
