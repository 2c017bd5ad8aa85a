//! `toolgate init`: a configuration to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use anyhow::{Context, bail};

use crate::cli::InitOptions;
use crate::exit::Exit;
use crate::say;

/// Every section with its defaults, and tools to copy from. A test reads it with the real reader.
pub(crate) const TEMPLATE: &str = include_str!("init.jsonc");

pub(crate) fn run(options: &InitOptions) -> anyhow::Result<Exit> {
    let path = options.file.display();
    if let Some(folder) = options.file.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut open = OpenOptions::new();
    open.write(true);
    if options.force {
        open.create(true).truncate(true)
    } else {
        open.create_new(true)
    };
    let mut file = match open.open(&options.file) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{path} is there already; --force overwrites it")
        }
        Err(error) => return Err(error).with_context(|| format!("cannot write {path}")),
    };
    file.write_all(TEMPLATE.as_bytes())
        .with_context(|| format!("cannot write {path}"))?;
    say::note(&format!("wrote {path}; try: toolgate list"));
    Ok(Exit::Success)
}
