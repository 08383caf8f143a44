//! `tasting-c++`: stands in for the C++ compiler.

fn main() -> ! {
    tasting::compile::main(tasting::process::find::Tool::Cxx)
}
