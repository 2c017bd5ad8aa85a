//! Skills (SEP-2640): instructions for models in folders with a `SKILL.md`, served as resources.

mod frontmatter;

pub use frontmatter::{FrontmatterError, parse_frontmatter};
