//! The `toolgate` program; all of it lives in the library.

fn main() -> std::process::ExitCode {
    toolgate::main()
}
