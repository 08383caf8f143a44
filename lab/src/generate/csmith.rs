//! Programs of csmith, which makes one file with everything static: split over several files, with
//! a header of all that they share.

use crate::dice::Dice;
use crate::process;
use crate::program::{File, Language, Packaging, Program, Segment, Test, Unit};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const OPTIONS: [&str; 11] = [
    "--concise",
    "--no-argc",
    "--no-packed-struct",
    "--max-funcs",
    "6",
    "--max-block-depth",
    "3",
    "--max-expr-complexity",
    "5",
    "--max-block-size",
    "3",
];

/// A split program; `None` if csmith is not there, takes too long, or writes what is not
/// understood.
pub fn program(dice: &mut Dice, scratch: &Path) -> Option<Program> {
    // Programs that do next to nothing teach nothing.
    let parts =
        (0..5).find_map(|_| parts(dice, scratch).filter(|parts| parts.functions.len() >= 2))?;
    Some(split(dice, parts))
}

fn parts(dice: &mut Dice, scratch: &Path) -> Option<Parts> {
    let seed = dice.number() % 1_000_000_000;
    let mut command = Command::new("csmith");
    command.args(OPTIONS).arg("--seed").arg(seed.to_string()).current_dir(scratch);
    let made = process::run(&mut command, scratch, Duration::from_secs(10))
        .ok()
        .filter(process::Ended::is_good)?;
    Parts::of(&made.text())
}

/// The pieces of a program.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    types: String,
    /// Definitions of variables, without `static`.
    variables: Vec<String>,
    prototypes: Vec<String>,
    functions: Vec<String>,
    main: String,
}

impl Parts {
    fn of(text: &str) -> Option<Parts> {
        let mut parts = Parts::default();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let own = line
                .strip_prefix("static ")
                .map(|line| line.strip_prefix("inline ").unwrap_or(line));
            match own {
                None if line.starts_with("int main") => {
                    parts.main = body(line, &mut lines);
                }
                None if line.starts_with("//") || line.starts_with("#include") => {}
                None => parts.types += &format!("{line}\n"),
                Some("long __undefined;") => {}
                Some(line) if lines.peek().is_some_and(|next| next.trim_end() == "{") => {
                    parts.functions.push(body(line, &mut lines));
                }
                Some(line)
                    if line.contains("func_")
                        && line.trim_end().ends_with(");")
                        && !line.contains('=') =>
                {
                    parts.prototypes.push(line.to_owned());
                }
                Some(line) => parts.variables.push(line.to_owned()),
            }
        }
        (!parts.main.is_empty()
            && parts.variables.iter().all(|line| line.trim_end().ends_with(';')))
        .then_some(parts)
    }
}

/// A function from its first line to the brace in the first column.
fn body<'l>(first: &str, lines: &mut impl Iterator<Item = &'l str>) -> String {
    let mut text = format!("{first}\n");
    for line in lines {
        text += &format!("{line}\n");
        if line == "}" {
            break;
        }
    }
    text
}

fn split(dice: &mut Dice, parts: Parts) -> Program {
    let mut header = format!("#include \"csmith.h\"\n{}", parts.types);
    for variable in &parts.variables {
        let declared = variable.split(" = ").next().unwrap_or(variable).trim_end_matches(';');
        header += &format!("extern {declared};\n");
    }
    parts.prototypes.iter().for_each(|line| header += &format!("{line}\n"));
    let count = dice.between(2, 4);
    let mut texts = vec!["#include \"all.h\"\n".to_owned(); count];
    texts[0] += &parts.main;
    for piece in parts.variables.iter().chain(&parts.functions) {
        *texts.get_mut(dice.below(count)).expect("below the count") += &format!("{piece}\n");
    }
    let unit = |(index, text)| {
        let segments = vec![Segment { owner: Some(0), text }];
        Unit { name: format!("u{index}.c"), segments, place: Packaging::Object }
    };
    Program {
        sort: "csmith",
        language: Language::C,
        headers: vec![File { name: "all.h".to_owned(), text: header }],
        units: texts.into_iter().enumerate().map(unit).collect(),
        tests: vec![Test { argument: None, entry: None, mark: String::new(), alike: Vec::new() }],
        flags: vec!["-I/usr/include/csmith".to_owned(), "-w".to_owned()],
        has_fuel: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_split_into_its_declarations() {
        let text = "// Options\n#include \"csmith.h\"\n\nstatic long __undefined;\n\nstruct S0 {\n   int f0;\n};\n\nstatic struct S0 g_2 = {3};\nstatic int g_3[2] = {1,2};\n\nstatic int  func_1(void);\n\nstatic int  func_1(void)\n{ \n    return g_3[0];\n}\n\nint main (void)\n{\n    func_1();\n    return 0;\n}\n";
        let parts = Parts::of(&text.replace("{ \n", "{\n")).unwrap();
        assert_eq!(parts.variables, ["struct S0 g_2 = {3};", "int g_3[2] = {1,2};"]);
        assert_eq!(parts.prototypes, ["int  func_1(void);"]);
        assert_eq!(parts.functions.len(), 1);
        assert!(parts.types.contains("struct S0"));
        let program = split(&mut Dice::new(1, ""), parts);
        assert!(program.headers[0].text.contains("extern struct S0 g_2;\nextern int g_3[2];\n"));
    }
}
