//! Programs in C++: the same ordinary functions as in C, and what only C++ has.

use super::c::Draft;
use super::{address_features, c_features, cxx_features};
use crate::dice::Dice;
use crate::program::{Language, Program};

pub fn program(dice: &mut Dice) -> Program {
    let count = dice.between(2, 4);
    let mut draft = Draft::new(count);
    for _ in 0..dice.between(32, 40) {
        for _ in 0..dice.between(1, 2) {
            let unit = dice.below(count);
            match dice.below(20) {
                0..5 => {
                    let name = draft.function(dice, unit);
                    draft.call(dice, &name);
                }
                5..7 => dice.pick(&c_features::IN_CXX)(&mut draft, dice, unit),
                7..9 => dice.pick(&address_features::ALL)(&mut draft, dice, unit),
                9 => dice.pick(&address_features::IN_CXX)(&mut draft, dice, unit),
                _ => dice.pick(&cxx_features::ALL)(&mut draft, dice, unit),
            }
        }
        draft.end_test();
    }
    draft.finish(dice, "c++", Language::Cxx, &["-std=c++17"])
}
