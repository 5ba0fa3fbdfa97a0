//! The `closer` binary.

fn main() -> std::process::ExitCode {
    closer::cli::main().into()
}
