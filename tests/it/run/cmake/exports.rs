//! What a program exports: it counts only for programs that ask for names at run time.

use super::{MODULE, Site, cmakes};

/// Below policy CMP0065 CMake links every program with -rdynamic. Current versions have only the new
/// behaviour.
const EXPORTS: &str = r"cmake_minimum_required(VERSION 3.10)
cmake_policy(SET CMP0065 ${EXPORTS_POLICY})
project(exports C)
enable_testing()
add_executable(plain plain.c kit.c)
add_executable(asks asks.c kit.c)
target_link_libraries(asks ${CMAKE_DL_LIBS})
add_test(NAME plain COMMAND plain)
add_test(NAME asks COMMAND asks)
";

const KIT: &str = "int used(void) { return 42; }\nint unused(void) { return 1; }\n";

const EXPORTS_FILES: &[(&str, &str)] = &[
    ("CMakeLists.txt", EXPORTS),
    ("kit.c", KIT),
    (
        "plain.c",
        "int used(void);\nint table[3] = {1, 2, 3};\nint main(void) { return used() - 42; }\n",
    ),
    (
        "asks.c",
        "#include <dlfcn.h>\nint used(void);\n\
         int main(void) { return used() - 42 + !dlsym(dlopen(0, RTLD_NOW), \"unused\"); }\n",
    ),
];

/// Whoever asks for a symbol by name runs when the exports go away or come back; nobody else does.
#[test]
#[ignore = "needs cmake"]
fn exports_count_only_for_programs_that_ask() {
    let site = Site::new(&cmakes()[0], EXPORTS_FILES);
    let module = format!("-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={MODULE}");
    let build = |policy: &str, exports: bool| {
        site.configure(&["-G", "Unix Makefiles", &module, &format!("-DEXPORTS_POLICY={policy}")]);
        site.build(&[]);
        let link = std::fs::read_to_string(site.bench.path("build/CMakeFiles/plain.dir/link.txt"))
            .unwrap();
        assert_eq!(link.contains("-rdynamic"), exports, "{link}");
    };
    let found = [("asks", "run"), ("plain", "run")];
    let missing = [("asks", "fail"), ("plain", "run")];
    build("OLD", true);
    site.expects(&[], &found, 2, 0);
    site.expects(&[], &found, 0, 2);
    build("NEW", false);
    site.expects(&[], &missing, 1, 1);
    build("OLD", true);
    site.expects(&[], &found, 0, 2);
    site.bench.write("kit.c", KIT.replace("return 1", "return 2"));
    build("OLD", true);
    site.expects(&[], &found, 0, 2);
    site.bench.write("kit.c", KIT.replace("unused", "renamed"));
    build("OLD", true);
    site.expects(&[], &missing, 1, 1);
}
