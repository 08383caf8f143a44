//! `tasting-ld`: stands in for the linker.

fn main() -> ! {
    tasting::link::shim::main()
}
