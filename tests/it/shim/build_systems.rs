//! Small projects built by CMake, Meson and autotools, unmodified: a manifest beside every
//! executable and library.

use std::path::Path;

use super::cases::{PART, PART_H};
use super::twins::{files_in, shell};
use crate::edits::matrix::COMPILERS;
use crate::workshop::{Outcome, Workshop, shims, tools};

const MAIN: &str = "#include \"part.h\"\nint main(void) { return part(1) == 9 ? 0 : 1; }\n";
const CXX: &str = "extern \"C\" {\n#include \"part.h\"\n}\nint main() { try { throw part(1); } catch (int x) { return x - 9; } }\n";

fn project(build_files: &[(&str, &str)]) -> Workshop {
    let workshop = Workshop::new();
    let sources = [("main.c", MAIN), ("main.cc", CXX), ("part.c", PART), ("part.h", PART_H)];
    for (name, text) in sources.iter().chain(build_files) {
        workshop.write(format!("work/{name}"), text);
    }
    workshop
}

fn well(workshop: &Workshop, line: &str) {
    let mut command = shell(workshop, COMPILERS[0]);
    command
        .env_remove("CC")
        .env_remove("CXX")
        .env_remove("LD")
        .env_remove("TASTING_CC")
        .env_remove("TASTING_CXX");
    command.env("REPOSITORY", env!("CARGO_MANIFEST_DIR")).env("SHIMS", shims());
    let outcome = Outcome::of(command.arg(line));
    assert!(outcome.success(), "{line}: {outcome:?}");
}

/// Every linked file outside of the build systems' scratch folders has a manifest that fits, and
/// nothing else has one.
fn all_have_manifests(workshop: &Workshop, expected: &[&str]) {
    let files = files_in(&workshop.path("work"));
    let manifests =
        files.keys().filter(|path| path.extension().is_some_and(|end| end == "tasting"));
    let mut described: Vec<String> =
        manifests.map(|path| path.with_extension("").display().to_string()).collect();
    described.sort();
    assert_eq!(described, expected, "the binaries that have manifests");
    let links = |path: &&Path| path.file_name().is_some_and(|name| name != "a.out");
    for binary in described.iter().map(Path::new).filter(links) {
        well(workshop, &format!("tasting fingerprint {}", binary.display()));
    }
}

const CMAKE: &str = "cmake_minimum_required(VERSION 3.21)
project(Small C CXX)
include(CheckFunctionExists)
check_function_exists(printf HAVE_PRINTF)
add_library(part SHARED part.c)
add_library(archive STATIC part.c)
add_executable(dynamic main.c)
target_link_libraries(dynamic part)
add_executable(static main.cc)
target_link_libraries(static archive)
";

fn cmake(generator: &str) {
    tools(&["cmake", "ninja"]);
    let workshop = project(&[("CMakeLists.txt", CMAKE)]);
    well(
        &workshop,
        &format!(
            "cmake -S . -B build -G '{generator}' --toolchain $REPOSITORY/cmake/tasting.cmake"
        ),
    );
    well(&workshop, "cmake --build build && build/dynamic && build/static");
    all_have_manifests(&workshop, &["build/dynamic", "build/libpart.so", "build/static"]);
    well(&workshop, "cmake --build build");
}

#[test]
#[ignore = "needs cmake"]
fn cmake_with_make() {
    cmake("Unix Makefiles");
}

#[test]
#[ignore = "needs cmake"]
fn cmake_with_ninja() {
    cmake("Ninja");
}

/// Jansson asks for CMake 3.1, and so gets the language of that version in the toolchain file too.
#[test]
#[ignore = "needs cmake"]
fn cmake_of_an_old_project() {
    tools(&["cmake", "ninja"]);
    let workshop = project(&[("CMakeLists.txt", &CMAKE.replace("VERSION 3.21", "VERSION 3.1"))]);
    // CMake 4 refuses such projects without that.
    let old = "-DCMAKE_POLICY_VERSION_MINIMUM=3.5";
    well(
        &workshop,
        &format!("cmake -S . -B build -G Ninja {old} --toolchain $REPOSITORY/cmake/tasting.cmake"),
    );
    well(&workshop, "cmake --build build && build/dynamic && build/static");
    all_have_manifests(&workshop, &["build/dynamic", "build/libpart.so", "build/static"]);
}

/// Without the toolchain file: the shims as the compilers.
#[test]
#[ignore = "needs cmake"]
fn cmake_with_the_shims_as_compilers() {
    tools(&["cmake", "ninja"]);
    let workshop = project(&[("CMakeLists.txt", CMAKE)]);
    well(
        &workshop,
        "cmake -S . -B build -G Ninja -DCMAKE_C_COMPILER=tasting-cc -DCMAKE_CXX_COMPILER=tasting-c++",
    );
    well(&workshop, "cmake --build build && build/dynamic && build/static");
    all_have_manifests(&workshop, &["build/dynamic", "build/libpart.so", "build/static"]);
}

#[test]
#[ignore = "needs meson"]
fn meson() {
    tools(&["meson", "ninja"]);
    let build = "project('small', 'c', 'cpp')
part = shared_library('part', 'part.c')
archive = static_library('archive', 'part.c')
executable('dynamic', 'main.c', link_with: part)
executable('static', 'main.cc', link_with: archive)
assert(meson.get_compiler('c').has_function('printf'))
";
    let workshop = project(&[("meson.build", build)]);
    well(&workshop, "meson setup --native-file $REPOSITORY/meson/tasting.ini build");
    well(&workshop, "ninja -C build && build/dynamic && build/static");
    all_have_manifests(&workshop, &["build/dynamic", "build/libpart.so", "build/static"]);
    well(&workshop, "ninja -C build -n | grep -q 'no work to do'");
}

#[test]
#[ignore = "needs autotools"]
fn autotools_with_libtool() {
    tools(&["autoconf", "automake", "libtoolize", "make"]);
    let configure = "AC_INIT([small], [1])
AC_CONFIG_MACRO_DIRS([m4])
AM_INIT_AUTOMAKE([foreign])
AC_PROG_CC
AM_PROG_AR
LT_INIT
AC_CHECK_FUNCS([printf strlcpy])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
";
    let automake = "ACLOCAL_AMFLAGS = -I m4
lib_LTLIBRARIES = libpart.la
libpart_la_SOURCES = part.c
bin_PROGRAMS = dynamic
dynamic_SOURCES = main.c
dynamic_LDADD = libpart.la
";
    let workshop = project(&[("configure.ac", configure), ("Makefile.am", automake)]);
    well(
        &workshop,
        "mkdir -p m4 && autoreconf -i >log 2>&1 && ./configure CC=tasting-cc >>log 2>&1 && make >>log 2>&1 && ./dynamic",
    );
    all_have_manifests(&workshop, &[".libs/dynamic", ".libs/libpart.so.0.0.0"]);
    well(&workshop, "make install DESTDIR=$PWD/out >>log 2>&1 && make distclean >>log 2>&1");
}

/// A makefile that knows nothing of the shims, with archives, and a second `make` that has nothing
/// to do.
#[test]
fn make_alone() {
    let makefile = "CFLAGS = -O1 -MMD
dynamic: main.o libpart.a
\t$(CC) $(LDFLAGS) -o $@ $^
libpart.a: part.o
\t$(AR) $(ARFLAGS) $@ $^
-include *.d
";
    let workshop = project(&[("Makefile", makefile)]);
    well(&workshop, "make -s -j2 CC=tasting-cc && ./dynamic");
    all_have_manifests(&workshop, &["dynamic"]);
    well(&workshop, "make -q CC=tasting-cc");
    well(
        &workshop,
        "cp dynamic.tasting before && sleep 0.02 && touch part.h && make -s CC=tasting-cc && cmp before dynamic.tasting",
    );
}
