//! What depends on where things lie, or on what the optimiser does: registries in the order of
//! addresses, tables in sections that are walked from one member to the next, lines that are told,
//! constants that are known after inlining, contraction.

use super::c::{Draft, other};
use super::c_features::Feature;
use crate::dice::Dice;

/// In C, and in C++ as well.
pub const ALL: [Feature; 7] = [
    variables_by_address,
    functions_by_address,
    table_in_section,
    told_lines,
    known_constant,
    object_size,
    contraction,
];

/// Only in C++.
pub const IN_CXX: [Feature; 1] = [objects_by_address];

/// Sorts pointers: with `qsort`, or by hand.
fn sorted(dice: &mut Dice, name: &str) -> (String, String) {
    let compare = format!(
        "static int {name}_compare(const void *one, const void *other)\n{{\n    const char *a = *(const char *const *)one, *b = *(const char *const *)other;\n    return a < b ? -1 : a > b;\n}}\n"
    );
    if dice.percent(50) {
        return (compare, format!("    qsort(all, count, sizeof *all, {name}_compare);\n"));
    }
    let by_hand = "    for (unsigned i = 1; i < count; i++)\n        for (unsigned j = i; j > 0 && (__UINTPTR_TYPE__)all[j] < (__UINTPTR_TYPE__)all[j - 1]; j--) {\n            const void *held = all[j];\n            all[j] = all[j - 1];\n            all[j - 1] = held;\n        }\n";
    (String::new(), by_hand.to_owned())
}

/// Variables of one or two units, noted in the order of their addresses.
fn variables_by_address(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let elsewhere = other(draft, dice, unit);
    let count = dice.between(2, 4);
    let mut names = Vec::new();
    for _ in 0..count {
        let name = draft.name("option");
        let home = if dice.percent(60) { unit } else { elsewhere };
        let value = dice.between(1, 99);
        draft.declarations += &format!("extern unsigned {name};\n");
        draft.units[home] += &format!("unsigned {name} = {value};\n");
        names.push(name);
    }
    let name = draft.name("registry");
    let (compare, sort) = sorted(dice, &name);
    let list: Vec<String> = names.iter().map(|name| format!("&{name}")).collect();
    draft.units[unit] += &format!(
        "{compare}unsigned {name}(unsigned a, unsigned b)\n{{\n    const void *volatile first[] = {{{}}};\n    const void *all[{count}];\n    unsigned count = {count}, sum = a;\n    for (unsigned i = 0; i < count; i++) all[i] = first[i];\n{sort}    for (unsigned i = 0; i < count; i++) sum = MIX(sum, *(const unsigned *)all[i]);\n    return sum + b;\n}}\n\n",
        list.join(", ")
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// Functions, called in the order of their addresses.
fn functions_by_address(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let count = dice.between(2, 4);
    let linkage = *dice.pick(&["static ", ""]);
    let mut names = Vec::new();
    for _ in 0..count {
        let name = draft.name("handler");
        let number = dice.between(2, 99);
        if linkage.is_empty() {
            draft.declare_only(&name);
        }
        draft.units[unit] += &format!(
            "{linkage}unsigned {name}(unsigned a, unsigned b) {{ return a * {number}u + b; }}\n"
        );
        names.push(name);
    }
    let name = draft.name("handlers");
    let (compare, sort) = sorted(dice, &name);
    let list: Vec<String> = names.iter().map(|name| format!("(const void *){name}")).collect();
    draft.units[unit] += &format!(
        "{compare}unsigned {name}(unsigned a, unsigned b)\n{{\n    const void *volatile first[] = {{{}}};\n    const void *all[{count}];\n    unsigned count = {count}, sum = a;\n    for (unsigned i = 0; i < count; i++) all[i] = first[i];\n{sort}    for (unsigned i = 0; i < count; i++) sum = ((unsigned (*)(unsigned, unsigned))all[i])(sum, b);\n    return sum;\n}}\n\n",
        list.join(", ")
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// Members of a section with a usual name, reached by stepping from the first to the last.
fn table_in_section(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (table, name) = (draft.name("tbl"), draft.name("stepped"));
    let section = dice.pick(&[".data.tbl.", ".data.", ".data.rel.set."]).to_string() + &table;
    let count = dice.between(2, 4);
    let mut members = String::new();
    for index in 0..count {
        members += &format!(
            "__attribute__((section(\"{section}\"), used)) static volatile unsigned {table}_{index} = {};\n",
            dice.between(1, 999)
        );
    }
    let last = count - 1;
    draft.units[unit] += &format!(
        "{members}unsigned {name}(unsigned a, unsigned b)\n{{\n    volatile unsigned *volatile low = &{table}_0, *volatile high = &{table}_{last};\n    unsigned sum = a;\n    if (low > high) {{ volatile unsigned *held = low; low = high; high = held; }}\n    for (volatile unsigned *at = low; at <= high; at++) {{ TICK; sum = MIX(sum, *at); }}\n    return sum + b;\n}}\n\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// A function that tells where in its file it is.
fn told_lines(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let name = draft.name("line");
    let line = dice.pick(&["__LINE__", "__builtin_LINE()"]);
    draft.units[unit] += &format!(
        "unsigned {name}(unsigned a, unsigned b)\n{{\n    return (unsigned){line} * {}u + a - b;\n}}\n\n",
        dice.between(1, 9)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// Whether an argument is a constant is known after inlining, or never.
fn known_constant(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (ask, name) = (draft.name("known"), draft.name("asks"));
    let body: String = (0..dice.between(0, 6))
        .map(|_| format!("    note(\"{ask}\", x + {});\n", dice.below(99)))
        .collect();
    draft.units[unit] += &format!(
        "static unsigned {ask}(unsigned x)\n{{\n{body}    return __builtin_constant_p(x) ? x + {}u : x * 3u;\n}}\nunsigned {name}(unsigned a, unsigned b) {{ return {ask}({}) + a * b; }}\n\n",
        dice.below(99),
        dice.below(99)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

fn object_size(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (ask, room, name) = (draft.name("size"), draft.name("room"), draft.name("sized"));
    draft.units[unit] += &format!(
        "static unsigned {ask}(const char *at)\n{{\n    TICK;\n    return (unsigned)__builtin_object_size(at, {});\n}}\nstatic char {room}[{}];\nunsigned {name}(unsigned a, unsigned b) {{ {room}[a % sizeof {room}] = (char)b; return {ask}({room} + {}); }}\n\n",
        dice.below(2),
        dice.between(16, 64),
        dice.below(9)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// A product and a sum, which pragmas and attributes may have rounded once or twice.
fn contraction(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (fused, name) = (draft.name("product"), draft.name("fused"));
    let pragma = *dice.pick(&[
        "",
        "#pragma STDC FP_CONTRACT ON\n",
        "#pragma STDC FP_CONTRACT OFF\n",
        "__attribute__((target(\"sse4.2\"))) ",
        "__attribute__((target(\"fma\"))) ",
    ]);
    // A processor without the instruction would end the program.
    let guard = if pragma.contains("\"fma\"") { "__builtin_cpu_supports(\"fma\") &&" } else { "" };
    draft.units[unit] += &format!(
        "{pragma}static unsigned {fused}(double a, double b)\n{{\n    double sum = a * b + {}.{};\n    return (unsigned)(__INT64_TYPE__)(sum * 1048576.0);\n}}\nunsigned {name}(unsigned a, unsigned b)\n{{\n    return {guard} a != b ? {fused}(a / {}.0, b / {}.0) : 1u;\n}}\n\n",
        dice.below(9),
        dice.below(999),
        dice.between(3, 13),
        dice.between(3, 17)
    );
    draft.declare(&name);
    draft.call(dice, &name);
}

/// Objects that enter themselves into a list in the order of their addresses, before `main`.
fn objects_by_address(draft: &mut Draft, dice: &mut Dice, unit: usize) {
    let (entry, name) = (draft.name("Entry"), draft.name("listed"));
    let elsewhere = other(draft, dice, unit);
    draft.declarations += &format!(
        "}}\nstruct {entry} {{ unsigned value; {entry} *next; static {entry} *first; explicit {entry}(unsigned v) : value(v), next(nullptr) {{ {entry} **at = &first; while (*at && (__UINTPTR_TYPE__)*at < (__UINTPTR_TYPE__)this) at = &(*at)->next; next = *at; *at = this; }} }};\nextern \"C\" {{\n"
    );
    draft.units[unit] += &format!("{entry} *{entry}::first;\n");
    for _ in 0..dice.between(2, 4) {
        let object = draft.name("object");
        let home = if dice.percent(60) { unit } else { elsewhere };
        draft.units[home] += &format!("{entry} {object}({}u);\n", dice.between(1, 99));
    }
    draft.units[unit] += &format!(
        "unsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned sum = a;\n    for ({entry} *at = {entry}::first; at; at = at->next) sum = MIX(sum, at->value);\n    return sum + b;\n}}\n\n"
    );
    draft.declare(&name);
    draft.call(dice, &name);
}
