//! Programs in C: several units full of small functions that call each other over files, most of them reached from `main`,
//! most of those executed; and features of the compiler and linker in between.

use super::c_features;
use super::expression::{self, Scope};
use crate::dice::Dice;
use crate::program::{File, Language, Program, Unit};

/// A program under construction.
pub struct Draft {
    /// The text of each unit.
    pub units: Vec<String>,
    /// What units see of each other.
    pub declarations: String,
    /// Functions `unsigned f(unsigned, unsigned)` that are visible everywhere, with the unit that defines them.
    pub functions: Vec<String>,
    /// What `main` does.
    pub main: String,
    /// Numbers what is made, so that names differ.
    pub count: usize,
}

impl Draft {
    pub fn new(units: usize) -> Draft {
        let (declarations, functions, main) = Default::default();
        Draft { units: vec!["#include \"lab.h\"\n#include \"knobs.h\"\n".to_owned(); units], declarations, functions, main, count: 0 }
    }

    pub fn name(&mut self, sort: &str) -> String {
        self.count += 1;
        format!("{sort}_{}", self.count)
    }

    /// Makes a function known to all units, which do not call it of their own accord.
    pub fn declare_only(&mut self, name: &str) {
        self.declarations += &format!("unsigned {name}(unsigned a, unsigned b);\n");
    }

    /// Makes a function known to all units.
    pub fn declare(&mut self, name: &str) {
        self.declarations += &format!("unsigned {name}(unsigned a, unsigned b);\n");
        self.functions.push(name.to_owned());
    }

    /// Lets `main` call a function; or lets it look as if it did; or not.
    pub fn call(&mut self, dice: &mut Dice, name: &str) {
        let (a, b) = (dice.below(200), dice.below(200));
        let call = format!("note(\"{name}\", {name}({a}, {b}u));");
        self.main += &match dice.below(12) {
            0 => String::new(),
            1 => format!("    if (count > 5) {call}\n"),
            2..5 => format!("    {call}\n"),
            // With several numbers, so that it goes more than one way.
            _ => format!("    for (unsigned i = 0; i < {}; i++) note(\"{name}\", {name}({a} + i * {}u, {b}u ^ i));\n", dice.between(2, 5), dice.between(1, 70)),
        };
    }

    /// An ordinary function in a unit, that calls some of those before it.
    pub fn function(&mut self, dice: &mut Dice, unit: usize) -> String {
        let name = self.name("f");
        let helper = dice.percent(40).then(|| self.helper(dice, unit));
        let mut callees: Vec<String> = helper.into_iter().collect();
        // Those before it only: no recursion but the one that is meant.
        let earlier = self.functions.len();
        for _ in 0..earlier.min(3) {
            callees.push(dice.pick(&self.functions).clone());
        }
        let mut scope =
            Scope { read: ["a", "b", "x", "y"].map(str::to_owned).to_vec(), written: ["x", "y"].map(str::to_owned).to_vec(), callees: &callees, calls: 2 };
        let count = dice.between(2, 5);
        let body = expression::statements(dice, &mut scope, count, "    ");
        let result = expression::expression(dice, &mut scope, 2);
        self.units[unit] += &format!(
            "unsigned {name}(unsigned a, unsigned b)\n{{\n    unsigned x = a + {}, y = lab_scale(b);\n    TICK;\n{body}    return {result} + x * 3u + y;\n}}\n\n",
            dice.below(50)
        );
        self.declare(&name);
        name
    }

    /// A static function.
    fn helper(&mut self, dice: &mut Dice, unit: usize) -> String {
        let name = self.name("helper");
        let mut scope = Scope { read: vec!["p".to_owned(), "q".to_owned()], written: vec!["p".to_owned()], callees: &[], calls: 0 };
        let body = expression::statements(dice, &mut scope, 1, "    ");
        let result = expression::expression(dice, &mut scope, 2);
        self.units[unit] += &format!("static unsigned {name}(unsigned p, unsigned q)\n{{\n{body}    return {result} + p;\n}}\n\n");
        name
    }

    /// The unit with `main`, and the rest of the program.
    pub fn finish(mut self, dice: &mut Dice, sort: &'static str, language: Language, flags: &[&str]) -> Program {
        let linkage = if language == Language::Cxx { "extern \"C\" " } else { "" };
        let ending = if language == Language::Cxx { "cc" } else { "c" };
        self.units[0] += &format!(
            "unsigned lab_fuel = 100000;\n{linkage}void note(const char *what, unsigned value)\n{{\n    TICK;\n    printf(\"%s %u\\n\", what, value);\n}}\n\nint main(int count, char **words)\n{{\n{}    note(\"words\", words[0] != 0);\n    return 0;\n}}\n",
            self.main
        );
        let places = super::places(dice, self.units.len());
        let unit = |(index, (text, place))| Unit { file: File { name: format!("u{index}.{ending}"), text }, place };
        Program {
            sort,
            language,
            headers: super::headers(&self.declarations),
            units: self.units.into_iter().zip(places).enumerate().map(unit).collect(),
            alike: self.functions,
            flags: flags.iter().map(|flag| flag.to_string()).collect(),
            has_fuel: true,
        }
    }
}

pub fn program(dice: &mut Dice) -> Program {
    let count = dice.between(3, 5);
    let mut draft = Draft::new(count);
    for _ in 0..dice.between(8, 14) {
        let unit = dice.below(count);
        if dice.percent(45) {
            let name = draft.function(dice, unit);
            draft.call(dice, &name);
        } else {
            let feature = dice.pick(&c_features::ALL);
            feature(&mut draft, dice, unit);
        }
    }
    let flags: &[&str] = if dice.percent(25) { &["-fcommon"] } else { &[] };
    draft.finish(dice, "c", Language::C, flags)
}
