//! Puts the files of the dashboard into the program: a list of them, for `dashboard.rs` to include.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "cargo::rerun-if-changed=assets")?;
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let assets = variable("CARGO_MANIFEST_DIR").join("assets");
    let mut files = Vec::new();
    collect(&assets, &mut files)?;
    files.sort();
    let mut list = String::from("&[");
    for file in files {
        let name = file.strip_prefix(&assets).unwrap_or(&file);
        write!(list, "({name:?}, include_bytes!({file:?})),").map_err(io::Error::other)?;
    }
    list.push(']');
    fs::write(variable("OUT_DIR").join("assets.rs"), list)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
