//! The order in memory of what has its address used as a value.

use super::{Edit, edit};
use tasting::model::Verdict;

const REGISTRY: &str = r#"
#include <stdio.h>
int alpha = 1, between_a, beta = 2;
__attribute__((noinline)) static void compare(void) {
    int *volatile left = &alpha, *volatile right = &beta;
    printf("%s\n", left < right ? "alpha beta" : "beta alpha");
}
__attribute__((noinline)) static void read(void) { printf("%d %d\n", alpha, beta); }
int main(int argc, char **argv) { (void)argv; if (argc > 1) read(); else compare(); return 0; }
"#;

const EXCHANGED: (&str, &str) =
    ("int alpha = 1, between_a, beta = 2;", "int beta = 2, between_a, alpha = 1;");

#[test]
fn exchanged_variables_whose_addresses_are_compared() {
    edit(REGISTRY, EXCHANGED.0, EXCHANGED.1).runs();
}

#[test]
fn exchanged_variables_compared_by_unexecuted_code() {
    Edit { arguments: &["read"], ..edit(REGISTRY, EXCHANGED.0, EXCHANGED.1) }.is_reused();
}

#[test]
fn another_variable_between_compared_ones() {
    let grown = edit(REGISTRY, "between_a, beta", "between_a, between_b[9] = {1}, beta");
    assert_eq!(grown.decide().0, Verdict::Reused);
}

/// Two functions of assembler, and a table of how far away they are. Nothing else refers to them.
const DISTANCES: &str = r#"
#include <stdio.h>
#define BODY(name, number) \
    __asm__(".section .text." #name ",\"ax\"\n.type " #name ", @function\n" \
            #name ": movl $" #number ", %eax\nret\n.size " #name ", .-" #name "\n.text");
BODY(one, 1) BODY(two, 2)
__asm__(".section .rodata.table,\"a\"\n.globl table\n.type table, @object\n"
        "table: .long one - table, two - table\n.size table, .-table\n.text");
extern const int table[2] __attribute__((visibility("hidden")));
int main(void) { printf("%d\n", table[0] < table[1]); return 0; }
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn exchanged_functions_of_which_distances_are_compared() {
    edit(DISTANCES, "BODY(one, 1) BODY(two, 2)", "BODY(two, 2) BODY(one, 1)").runs();
}
