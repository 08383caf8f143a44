//! A scenario: one or two random tests, the world in which they start, and rounds of changes from
//! outside.

use super::change::Change;
use super::launch::Test;
use super::steps::{self, Feature, Language, Maker, Step};
use super::world::World;
use crate::dice::Dice;

/// A test with its steps.
#[derive(Clone, Debug)]
pub struct Plan {
    pub test: Test,
    pub steps: Vec<Step>,
}

/// Changes from outside, and whether they come on top of what the last run left behind.
#[derive(Clone, Debug)]
pub struct Round {
    pub goes_on: bool,
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub plans: Vec<Plan>,
    pub world: World,
    pub rounds: Vec<Round>,
    pub reuses_failures: bool,
}

impl Scenario {
    /// The scenario with this number; none if no step is to be had.
    pub fn new(seed: u64, number: u64, maker: &Maker) -> Option<Scenario> {
        let mut dice = Dice::new(seed, &format!("runs {number}"));
        let world = World::new(&mut dice, maker.toolbox);
        let is_pair = maker.features.contains(&Feature::Parallel)
            && (dice.percent(8) || maker.features[..] == [Feature::Parallel]);
        // Some share a name, and with it what was stored.
        let name = if dice.percent(15) { "test".to_owned() } else { format!("t{number}") };
        let plans = if is_pair {
            ["a", "b"].map(|own| one_of_two(&mut dice, maker, own, &name)).to_vec()
        } else {
            vec![alone(&mut dice, maker, name)?]
        };
        let all: Vec<&Step> = plans.iter().flat_map(|plan| &plan.steps).collect();
        let rounds = (0..dice.between(3, 6)).map(|_| round(&mut dice, &all)).collect();
        let reuses_failures = dice.percent(40);
        Some(Scenario { plans, world, rounds, reuses_failures })
    }

    /// The world at the beginning, with the tests in it.
    pub fn beginning(&self) -> World {
        let mut world = self.world.clone();
        self.put_tests(&mut world);
        world
    }

    /// Puts the tests there, which changes may have taken away.
    pub fn put_tests(&self, world: &mut World) {
        for plan in &self.plans {
            if plan.test.language != Language::C {
                world.add_test(&plan.test.name, &steps::text(plan.test.language, &plan.steps));
            }
        }
    }

    /// The tests as they are called.
    pub fn tests(&self) -> Vec<Test> {
        let test = |plan: &Plan| {
            let mut test = plan.test.clone();
            if test.language == Language::C {
                test.command
                    .extend(steps::text(Language::C, &plan.steps).split(' ').map(str::to_owned));
            }
            test
        };
        self.plans.iter().map(test).collect()
    }

    pub fn features(&self) -> Vec<Feature> {
        let mut features: Vec<Feature> = self.steps().map(|step| step.feature).collect();
        if self.plans.len() > 1 {
            features.push(Feature::Parallel);
        }
        features.sort_unstable();
        features.dedup();
        features
    }

    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.plans.iter().flat_map(|plan| &plan.steps)
    }

    /// All scenarios with a part less, the largest parts first.
    pub fn smaller(&self) -> Vec<Scenario> {
        let mut found = Vec::new();
        for at in 0..self.rounds.len() {
            found.push(self.without(|less| drop(less.rounds.remove(at))));
        }
        if self.plans.len() > 1 {
            for at in 0..self.plans.len() {
                found.push(self.without(|less| drop(less.plans.remove(at))));
            }
        }
        for (number, plan) in self.plans.iter().enumerate() {
            for at in 0..plan.steps.len() {
                if plan.steps.len() > 1 {
                    found.push(self.without(|less| drop(less.plans[number].steps.remove(at))));
                }
            }
        }
        for (number, round) in self.rounds.iter().enumerate() {
            for at in 0..round.changes.len() {
                found.push(self.without(|less| drop(less.rounds[number].changes.remove(at))));
            }
        }
        found
    }

    fn without(&self, change: impl FnOnce(&mut Scenario)) -> Scenario {
        let mut less = self.clone();
        change(&mut less);
        less
    }

    /// For people.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for plan in &self.plans {
            text += &format!("== {} as {:?}\n", plan.test.name, plan.test.command);
            text += &steps::text(plan.test.language, &plan.steps);
            text += "\n";
        }
        let launch = &self.world.launch;
        text +=
            &format!("== called as\n{launch:?}\nfailures are reused: {}\n", self.reuses_failures);
        for round in &self.rounds {
            text += &format!(
                "== then, from {}\n",
                if round.goes_on { "what was left" } else { "the state before" }
            );
            round.changes.iter().for_each(|change| text += &format!("{change:?}\n"));
        }
        text
    }
}

fn one_of_two(dice: &mut Dice, maker: &Maker, own: &'static str, name: &str) -> Plan {
    let maker = Maker { own: Some(own), ..*maker };
    let steps = (0..dice.between(1, 3)).map(|_| maker.parallel_step(dice)).collect();
    let name = format!("{name}{own}");
    Plan {
        test: Test { command: vec![format!("./{name}")], name, language: Language::Dash },
        steps,
    }
}

fn alone(dice: &mut Dice, maker: &Maker, name: String) -> Option<Plan> {
    let language = match dice.below(100) {
        0..=29 => Language::Dash,
        30..=44 => Language::Bash,
        45..=56 => Language::Python,
        57..=71 => Language::Perl,
        _ => Language::C,
    };
    let steps = (0..dice.between(1, 5))
        .map(|_| maker.step(dice, language))
        .collect::<Option<Vec<Step>>>()?;
    let path = format!("./{name}");
    let command = match (language, dice.below(10)) {
        (Language::C, 0..=3) => vec!["bin/tool".to_owned()],
        (Language::C, 4) if maker.features.contains(&Feature::Sanitizers) => {
            vec![maker.toolbox.sanitized(dice)]
        }
        (Language::C, 5 | 6) if maker.features.contains(&Feature::Libcs) => {
            vec![maker.toolbox.libc(dice)]
        }
        (Language::C, _) => vec![maker.toolbox.any(dice)],
        (Language::Dash, 0..=2) => vec!["sh".to_owned(), name.clone()],
        (Language::Perl, 0..=2) => vec!["perl".to_owned(), name.clone()],
        _ => vec![path],
    };
    Some(Plan { test: Test { name, language, command }, steps })
}

fn round(dice: &mut Dice, steps: &[&Step]) -> Round {
    let count = if dice.percent(75) { 1 } else { 2 };
    Round {
        goes_on: dice.percent(35),
        changes: (0..count).map(|_| Change::new(dice, steps)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::toolbox::{Toolbox, Traced};
    use clap::ValueEnum;
    use std::process::{Command, Stdio};

    fn toolbox() -> Toolbox {
        let traced = Traced { program: Vec::new(), manifest: Vec::new() };
        Toolbox::of("/toolbox/gcc", &traced)
    }

    /// Texts of many tests in a language, with every line of its table in it.
    fn scenarios(count: u64) -> Vec<Scenario> {
        let toolbox = toolbox();
        let maker = Maker {
            toolbox: &toolbox,
            features: Feature::value_variants(),
            port: 24_000,
            own: None,
        };
        (0..count)
            .map(|number| Scenario::new(1, number, &maker).expect("there are steps"))
            .collect()
    }

    #[test]
    fn a_seed_gives_the_same_scenarios() {
        let [one, other] = [scenarios(20), scenarios(20)];
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one.describe(), other.describe());
        }
    }

    #[test]
    fn names_in_braces_are_filled() {
        for scenario in scenarios(300) {
            for step in scenario.steps() {
                for name in [
                    "{file}", "{dir}", "{link}", "{out}", "{new}", "{word}", "{tool}", "{exe}",
                    "{own}", "{keep}",
                ] {
                    assert!(!step.text.contains(name), "{}", step.text);
                }
            }
        }
    }

    #[test]
    fn tests_are_valid_in_their_language() {
        let folder = tempfile::tempdir().unwrap();
        for scenario in scenarios(60) {
            for plan in &scenario.plans {
                let path = folder.path().join("test");
                std::fs::write(&path, steps::text(plan.test.language, &plan.steps)).unwrap();
                let mut command = match plan.test.language {
                    Language::Dash => Command::new("dash"),
                    Language::Bash => Command::new("bash"),
                    Language::Perl => Command::new("perl"),
                    Language::Python => Command::new("/usr/bin/python3"),
                    Language::C => continue,
                };
                match plan.test.language {
                    Language::Python => {
                        command.args(["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"])
                    }
                    Language::Perl => command.arg("-c"),
                    _ => command.arg("-n"),
                };
                let status = command.arg(&path).stderr(Stdio::null()).status().unwrap();
                assert!(status.success(), "{}", steps::text(plan.test.language, &plan.steps));
            }
        }
    }

    #[test]
    fn smaller_scenarios_have_a_part_less() {
        let size = |scenario: &Scenario| {
            scenario.steps().count()
                + scenario.rounds.iter().map(|round| 1 + round.changes.len()).sum::<usize>()
        };
        for scenario in scenarios(20) {
            assert!(scenario.smaller().iter().all(|less| size(less) < size(&scenario)));
        }
    }
}
