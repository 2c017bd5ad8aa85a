//! Wyoming services of this program.
