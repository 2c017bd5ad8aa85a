//! Parses the `container` of a server's entry.

use std::path::PathBuf;

use serde_json::Value;

use super::values::{EntryError, EntryValue, object, string, string_list};

/// The container that a server runs in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ContainerSettings {
    pub image: String,
    /// The engine and the options before its `run`. Empty: podman, or docker
    /// where podman is missing.
    pub engine: Vec<String>,
    /// The engine's name of the network. `None`: no network.
    pub network: Option<String>,
    pub mounts: Vec<ContainerMount>,
    pub options: Vec<String>,
}

/// A file or folder of this machine that is visible in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerMount {
    pub source: PathBuf,
    /// The path in the container with the engine's flags, such as `/data:ro`.
    pub target: String,
}

/// Parses an image name or an object. `path` resolves the sources of mounts.
pub(super) fn parse(
    given: EntryValue<'_>,
    path: impl Fn(&str) -> PathBuf,
) -> Result<ContainerSettings, EntryError> {
    let (key, value) = given;
    let mut container = ContainerSettings::default();
    if !value.is_object() {
        container.image = string(given)?.to_owned();
        return check(container, &[key]);
    }
    let add_key = |error: EntryError| error.under_key(key);
    for (name, value) in object(given)? {
        match (name.as_str(), value) {
            ("image", value) => {
                container.image = string(("image", value)).map_err(add_key)?.to_owned();
            }
            ("engine", Value::String(engine)) => container.engine = vec![engine.clone()],
            ("engine", value) => {
                container.engine = string_list(("engine", value)).map_err(add_key)?;
            }
            ("network", value) => {
                container.network = Some(string(("network", value)).map_err(add_key)?.to_owned());
            }
            ("mounts", value) => {
                let mounts = string_list(("mounts", value)).map_err(add_key)?;
                let mount = |(index, text): (usize, &String)| {
                    mount(text, &path).ok_or_else(|| {
                        let text = "must look like HERE:/THERE or HERE:/THERE:ro";
                        EntryError::at(&[key, "mounts", &index.to_string()], text)
                    })
                };
                let mounts: Result<Vec<_>, _> = mounts.iter().enumerate().map(mount).collect();
                container.mounts = mounts?;
            }
            ("options", value) => {
                container.options = string_list(("options", value)).map_err(add_key)?;
            }
            // Unknown keys are errors here: if one were ignored, the server might be
            // less confined than intended.
            _ => {
                let text = "is unknown; a container has image, engine, network, mounts and options";
                return Err(EntryError::at(&[key, name], text));
            }
        }
    }
    check(container, &[key, "image"])
}

// The engine would take a word that begins with a dash for an option.
fn check(container: ContainerSettings, image: &[&str]) -> Result<ContainerSettings, EntryError> {
    let is_name = |text: &str| !text.trim().is_empty() && !text.starts_with('-');
    match (is_name(&container.image), container.network.as_deref()) {
        (false, _) => Err(EntryError::at(image, "must be the name of an image")),
        (_, Some(network)) if !is_name(network) => {
            let text = "must be a network of the engine, such as bridge or none";
            Err(EntryError::at(&[image[0], "network"], text))
        }
        _ => Ok(container),
    }
}

fn mount(text: &str, path: impl Fn(&str) -> PathBuf) -> Option<ContainerMount> {
    let (source, target) = text.split_once(':')?;
    (!source.is_empty() && target.starts_with('/')).then(|| ContainerMount {
        source: path(source),
        target: target.to_owned(),
    })
}
