//! A server that runs in a container, as its entry says it.

use std::path::PathBuf;

use serde_json::Value;

use super::values::{Given, Wrong, object, string, texts};

/// The container that a server runs in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Container {
    /// What it is made of.
    pub image: String,
    /// The engine and the options in front of its `run`; empty: podman, or docker where there is no
    /// podman.
    pub engine: Vec<String>,
    /// What it is connected to, as the engine calls it; none: nothing.
    pub network: Option<String>,
    /// What it sees of this machine: a path here, a path in there, and whether it may only read.
    pub mounts: Vec<Mount>,
    /// Options of the engine's `run` besides ours.
    pub options: Vec<String>,
}

/// A file or folder of this machine in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is here.
    pub source: PathBuf,
    /// Where it is in there, with the engine's flags: `/data`, `/data:ro`.
    pub target: String,
}

const IMAGE: &str = "image";
const ENGINE: &str = "engine";
const NETWORK: &str = "network";
const MOUNTS: &str = "mounts";
const OPTIONS: &str = "options";

/// An image, or an object; `path` resolves what is mounted.
pub(super) fn read(given: Given<'_>, path: impl Fn(&str) -> PathBuf) -> Result<Container, Wrong> {
    let (key, value) = given;
    let mut container = Container::default();
    if !value.is_object() {
        container.image = string(given)?.to_owned();
        return check(container, &[key]);
    }
    let under = |wrong: Wrong| Wrong {
        text: format!("{key}.{}", wrong.text),
        path: std::iter::once(key.to_owned()).chain(wrong.path).collect(),
    };
    for (name, value) in object(given)? {
        match (name.as_str(), value) {
            (IMAGE, value) => container.image = string((IMAGE, value)).map_err(under)?.to_owned(),
            (ENGINE, Value::String(engine)) => container.engine = vec![engine.clone()],
            (ENGINE, value) => container.engine = texts((ENGINE, value)).map_err(under)?,
            (NETWORK, value) => {
                container.network = Some(string((NETWORK, value)).map_err(under)?.to_owned());
            }
            (MOUNTS, value) => {
                let mounts = texts((MOUNTS, value)).map_err(under)?;
                let mount = |(index, text): (usize, &String)| {
                    mount(text, &path).ok_or_else(|| {
                        let text = "must look like HERE:/THERE or HERE:/THERE:ro";
                        Wrong::at(&[key, MOUNTS, &index.to_string()], text)
                    })
                };
                let mounts: Result<Vec<_>, _> = mounts.iter().enumerate().map(mount).collect();
                container.mounts = mounts?;
            }
            (OPTIONS, value) => container.options = texts((OPTIONS, value)).map_err(under)?,
            // Something that was meant to confine must not be overlooked.
            _ => {
                let text =
                    "is unknown here; a container has image, engine, network, mounts and options";
                return Err(Wrong::at(&[key, name], text));
            }
        }
    }
    check(container, &[key, IMAGE])
}

/// A word that begins with a dash would be taken for an option.
fn check(container: Container, image: &[&str]) -> Result<Container, Wrong> {
    let is_name = |text: &str| !text.trim().is_empty() && !text.starts_with('-');
    match (is_name(&container.image), container.network.as_deref()) {
        (false, _) => Err(Wrong::at(image, "must be the name of an image")),
        (_, Some(network)) if !is_name(network) => {
            let text = "must be a network of the engine, such as bridge or none";
            Err(Wrong::at(&[image[0], NETWORK], text))
        }
        _ => Ok(container),
    }
}

fn mount(text: &str, path: impl Fn(&str) -> PathBuf) -> Option<Mount> {
    let (source, target) = text.split_once(':')?;
    (!source.is_empty() && target.starts_with('/')).then(|| Mount {
        source: path(source),
        target: target.to_owned(),
    })
}
