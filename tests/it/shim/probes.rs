//! Probes of configure scripts and build systems get neither records nor manifests.

use super::cases::ONE;
use super::twins::Scene;
use crate::edits::matrix::compilers;

#[test]
fn probes_leave_nothing() {
    for compiler in compilers() {
        let mut scene = Scene::bare(compiler).file("conftest.c", ONE).file("x.c", ONE);
        let folders = [
            "CMakeFiles/CMakeScratch/TryCompile-a1",
            "CMakeFiles/CMakeTmp",
            "meson-private/tmpab",
            ".sconf_temp",
        ];
        for folder in folders {
            scene = scene.file(format!("{folder}/source.c"), ONE);
        }
        let mut lines = vec![
            "$CC -Wl,--build-id=none -o conftest conftest.c && ./conftest".to_owned(),
            "$CC -c conftest.c && $CC -Wl,--build-id=none conftest.o && ./a.out".to_owned(),
            "$CC -c x.c -o conftest2.o".to_owned(),
            "cp conftest.o other.o && $LD -r other.o -o conftest3.o".to_owned(),
        ];
        lines.extend(folders.map(|folder| {
            format!("cd {folder} && $CC -c source.c && $CC source.o -Wl,--build-id=none -o prog && ./prog")
        }));
        let twins = scene.run(&lines).same_and_well();
        assert!(twins.manifests().is_empty(), "{}: {:?}", compiler.name, twins.manifests());
        assert!(twins.with_record().is_empty(), "{}: {:?}", compiler.name, twins.with_record());
    }
}
