//! The `tasting` command.

fn main() -> std::process::ExitCode {
    tasting::cli::main()
}
