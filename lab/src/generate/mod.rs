//! Generators of programs: csmith's, split over files, and our own for what csmith does not make.

mod address_features;
mod c;
mod c_features;
mod csmith;
mod cxx;
mod cxx_features;
mod expression;
mod process_features;

use crate::dice::Dice;
use crate::program::{File, Packaging, Program};
use std::path::Path;

/// A program. `None` where csmith gave none that can be split.
pub fn program(dice: &mut Dice, scratch: &Path) -> Option<Program> {
    match dice.below(100) {
        0..38 => Some(c::program(dice)),
        38..94 => Some(cxx::program(dice)),
        _ => csmith::program(dice, scratch),
    }
}

/// A program in C or C++ that is quickly built.
pub fn small(dice: &mut Dice) -> Program {
    if dice.percent(50) { c::program(dice) } else { cxx::program(dice) }
}

/// A program in C.
pub fn small_c(dice: &mut Dice) -> Program {
    c::program(dice)
}

/// What all our units include. `knobs.h` and `knobs_other.h` are the same but for the values.
fn headers(declarations: &str) -> Vec<File> {
    let common = format!("{COMMON}{declarations}#ifdef __cplusplus\n}}\n#endif\n");
    [("lab.h", common.as_str()), ("knobs.h", KNOBS), ("knobs_other.h", OTHER_KNOBS)]
        .map(|(name, text)| File { name: name.to_owned(), text: text.to_owned() })
        .to_vec()
}

const COMMON: &str = "\
#ifdef __cplusplus
extern \"C\" {
#endif
int printf(const char *, ...);
int atexit(void (*)(void));
void exit(int);
void _exit(int);
int fork(void);
int waitpid(int, int *, int);
void (*signal(int, void (*)(int)))(int);
int raise(int);
int pthread_create(unsigned long *, const void *, void *(*)(void *), void *);
int pthread_join(unsigned long, void **);
void *memcpy(void *, const void *, __SIZE_TYPE__);
void qsort(void *, __SIZE_TYPE__, __SIZE_TYPE__, int (*)(const void *, const void *));
extern unsigned lab_fuel;
#define TICK do { if (--lab_fuel == 0) { printf(\"no fuel\\n\"); exit(3); } } while (0)
#define MIX(a, b) ((a) * 33u ^ (b))
enum colour { RED = 3, GREEN = 5, BLUE, LIMIT = 17 };
struct item { int weight; short kind; unsigned char flags; const char *label; };
static inline unsigned lab_turn(unsigned x, unsigned n) { return (x << (n & 31u)) | (x >> ((32u - n) & 31u)); }
void note(const char *what, unsigned value);
";
const KNOBS: &str = "#ifndef SCALE\n#define SCALE 7\n#endif\n#define OFFSET 100\n#define TITLE \"knobs\"\nstatic inline unsigned lab_scale(unsigned x) { return x * SCALE + OFFSET; }\n";
const OTHER_KNOBS: &str = "#ifndef SCALE\n#define SCALE 9\n#endif\n#define OFFSET 101\n#define TITLE \"other\"\nstatic inline unsigned lab_scale(unsigned x) { return x * SCALE - OFFSET; }\n";

/// Where the objects go. The first unit has `main`.
fn places(dice: &mut Dice, count: usize) -> Vec<Packaging> {
    let style = dice.below(10);
    let place = |index: usize, dice: &mut Dice| match style {
        _ if index == 0 => Packaging::Object,
        0..5 => Packaging::Object,
        5..7 if dice.percent(60) => Packaging::Archive,
        7..9 if dice.percent(50) => Packaging::Library,
        9 => *dice.pick(&[Packaging::Archive, Packaging::Library]),
        _ => Packaging::Object,
    };
    (0..count).map(|index| place(index, dice)).collect()
}
