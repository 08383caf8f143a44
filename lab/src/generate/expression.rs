//! Random expressions and statements over unsigned numbers, in the part of C that C++ shares.
//! Divisors are never zero and shifts never too wide, so that the program as it is made is a sound
//! one; mutations may change that.

use crate::dice::Dice;

const OPERATORS: [&str; 6] = ["+", "-", "*", "^", "|", "&"];
const COMPARISONS: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];
const CASTS: [&str; 6] =
    ["unsigned char", "short", "signed char", "unsigned short", "int", "unsigned"];

/// What statements may use.
pub struct Scope<'s> {
    /// Variables to read.
    pub read: Vec<String>,
    /// Variables to write.
    pub written: Vec<String>,
    /// Functions of two numbers.
    pub callees: &'s [String],
    /// Calls that are still allowed: each one multiplies the work.
    pub calls: usize,
}

pub fn constant(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => format!("{}u", dice.below(10)),
        1 => format!("{}", dice.between(1, 300)),
        2 => format!("0x{:x}u", dice.below(1 << 16)),
        _ => dice.pick(&["RED", "GREEN", "BLUE", "SCALE", "LIMIT"]).to_string(),
    }
}

/// A number.
pub fn expression(dice: &mut Dice, scope: &mut Scope, depth: usize) -> String {
    if depth == 0 {
        return if dice.percent(60) { dice.pick(&scope.read).clone() } else { constant(dice) };
    }
    match dice.below(12) {
        0 => format!("({} % {}u)", expression(dice, scope, depth - 1), dice.between(2, 40)),
        1 => format!("({} / {}u)", expression(dice, scope, depth - 1), dice.between(2, 9)),
        2 => format!("({} >> {})", expression(dice, scope, depth - 1), dice.between(1, 9)),
        3 => format!("({} << {})", expression(dice, scope, depth - 1), dice.between(1, 5)),
        4 => format!("(unsigned)({})({})", dice.pick(&CASTS), expression(dice, scope, depth - 1)),
        5 => format!(
            "({} ? {} : {})",
            condition(dice, scope),
            expression(dice, scope, depth - 1),
            expression(dice, scope, depth - 1)
        ),
        6 => format!(
            "MIX({}, {})",
            expression(dice, scope, depth - 1),
            expression(dice, scope, depth - 1)
        ),
        7 if scope.calls > 0 && !scope.callees.is_empty() => {
            scope.calls -= 1;
            let callee = dice.pick(scope.callees).clone();
            format!(
                "{callee}({}, {})",
                expression(dice, scope, depth - 1),
                expression(dice, scope, depth - 1)
            )
        }
        8 => format!("lab_turn({}, {})", expression(dice, scope, depth - 1), dice.between(1, 31)),
        _ => {
            let operator = dice.pick(&OPERATORS);
            format!(
                "({} {operator} {})",
                expression(dice, scope, depth - 1),
                expression(dice, scope, depth - 1)
            )
        }
    }
}

pub fn condition(dice: &mut Dice, scope: &mut Scope) -> String {
    let one = format!("({} & 63)", expression(dice, scope, 1));
    let simple = format!("{one} {} {}", dice.pick(&COMPARISONS), dice.below(64));
    match dice.below(4) {
        0 => format!("{simple} && {} != {}", expression(dice, scope, 0), constant(dice)),
        1 => format!("!({simple})"),
        _ => simple,
    }
}

/// Some lines that change the variables.
pub fn statements(dice: &mut Dice, scope: &mut Scope, count: usize, indent: &str) -> String {
    (0..count).map(|_| statement(dice, scope, indent)).collect()
}

fn statement(dice: &mut Dice, scope: &mut Scope, indent: &str) -> String {
    let target = dice.pick(&scope.written).clone();
    let deeper = format!("{indent}    ");
    match dice.below(if indent.len() > 8 { 5 } else { 9 }) {
        0 => format!("{indent}{target} += {};\n", expression(dice, scope, 2)),
        1 => format!("{indent}{target} ^= {};\n", expression(dice, scope, 2)),
        2 => format!("{indent}note(\"{target}{}\", {target});\n", dice.below(90)),
        3 | 4 => format!("{indent}{target} = {};\n", expression(dice, scope, 3)),
        5 => {
            let (then, other) = (statement(dice, scope, &deeper), statement(dice, scope, &deeper));
            format!(
                "{indent}if ({}) {{\n{then}{indent}}} else {{\n{other}{indent}}}\n",
                condition(dice, scope)
            )
        }
        6 => {
            let (variable, end) = (format!("i{}", indent.len()), dice.between(2, 6));
            scope.read.push(variable.clone());
            let calls = std::mem::take(&mut scope.calls);
            let inside = statements(dice, scope, 2, &deeper);
            scope.calls = calls;
            scope.read.pop();
            format!(
                "{indent}for (unsigned {variable} = 0; {variable} < {end}; {variable}++) {{\n{deeper}TICK;\n{inside}{indent}}}\n"
            )
        }
        7 => switch(dice, scope, indent),
        _ => {
            let size = dice.between(3, 6);
            let numbers: Vec<String> = (0..size).map(|_| constant(dice)).collect();
            let place = expression(dice, scope, 1);
            let list = numbers.join(", ");
            format!(
                "{indent}{{\n{deeper}unsigned row[{size}] = {{{list}}};\n{deeper}row[{target} % {size}u] += {target};\n{deeper}{target} += row[{place} % {size}u];\n{indent}}}\n"
            )
        }
    }
}

fn switch(dice: &mut Dice, scope: &mut Scope, indent: &str) -> String {
    let deeper = format!("{indent}    ");
    let cases = dice.between(3, 7);
    let mut text = format!("{indent}switch ({} % {}u) {{\n", expression(dice, scope, 1), cases + 1);
    for case in 0..cases {
        let target = dice.pick(&scope.written).clone();
        text +=
            &format!("{indent}case {case}:\n{deeper}{target} += {};\n", expression(dice, scope, 1));
        if dice.percent(80) {
            text += &format!("{deeper}break;\n");
        }
    }
    text +=
        &format!("{indent}default:\n{deeper}note(\"other\", {});\n{indent}}}\n", scope.written[0]);
    text
}
