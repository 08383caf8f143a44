//! Small sources that several tests build.

/// A program of two files, with data, strings, a table of functions and something unreached.
pub const MAIN: &str = r#"#include <stdio.h>
#include "part.h"
static int counter = 7;
static const char *const names[] = {"zero", "one", "two"};
static int twice(int x) { return 2 * x; }
static int square(int x) { return x * x; }
static int (*const table[])(int) = {twice, square};
int unreached(int x) { return x - 41; }
int main(int argc, char **argv) {
    (void)argv;
    counter += table[argc & 1](part(argc));
    printf("%s %d\n", names[argc % 3], counter);
    return 0;
}
"#;

pub const PART_H: &str = "int part(int x);\nextern int shared_value;\n";

pub const PART: &str = r#"#include "part.h"
int shared_value = 5;
static int buffer[64];
__attribute__((noinline)) static int help(int x) { return buffer[x & 63] + shared_value; }
int part(int x) { buffer[x & 63]++; return help(x) + 3; }
int unused_part(int x) { return x ^ 99; }
"#;

/// A program in one file that needs no header.
pub const ONE: &str =
    "int helper(int x) { return x + 1; }\nint main(void) { return helper(-1); }\n";

/// C++: a class with virtual methods, a template, an exception, an inline function in a group of
/// its own.
pub const CXX: &str = r#"struct DependencySet { virtual ~DependencySet() {} virtual int area() const = 0; };
struct Square : DependencySet { int side; explicit Square(int s) : side(s) {} int area() const override { return side * side; } };
template <class T> T larger(T a, T b) { return a < b ? b : a; }
inline int counted() { static int count = 3; return ++count; }
static int checked(const DependencySet &dependency_set) { if (dependency_set.area() > 100) throw 7; return dependency_set.area(); }
int main() {
    try { return larger(checked(Square(3)), counted()) - 9; } catch (int) { return 1; }
}
"#;
