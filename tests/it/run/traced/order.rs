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
