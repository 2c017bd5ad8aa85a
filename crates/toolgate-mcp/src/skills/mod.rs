//! Skills (SEP-2640): instructions for models in folders with a `SKILL.md`, served as resources.

mod frontmatter;
mod scan;
mod served;
mod verify;

pub use frontmatter::{FrontmatterError, parse_frontmatter};
pub use served::{SkillFolders, SkillsSettings};
pub use verify::{SkillMismatch, verify_skill_file};
