//! The program itself, as a client starts it.

mod client;
mod ends;
mod without_a_house;
