//! What a register or a word of memory can hold, as far as addresses of code are concerned.
//!
//! A value is a place and an offset: an exact one, or one of a series (`step`). Whatever is not an
//! address of interest is a number, known or not. Joining two values keeps the address of code: it
//! *may* be there.

/// What a value is an offset from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueBase {
    Number,
    /// The functions of this binary. The offset is the address where the step is 0.
    Code,
    /// The frame of the function that is followed, from where its stack pointer was at its entry.
    Stack,
    /// A copy of what a caller had in its frame, by number.
    Caller(u32),
    /// Any of a group of variables that lead to code, by number.
    Data(u32),
    /// A function of another module, by number.
    Import(u32),
}

/// An offset of `at`, or of `at` and any multiple of `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    pub place: ValueBase,
    pub at: i64,
    pub step: u64,
    /// Which unknown number the step is a multiple of; 0 if several. In an address of code:
    /// `LESS_ONE` or 0.
    pub source: u32,
}

/// One was taken from the address of a function, as C++ does with pointers to virtual member
/// functions.
pub const LESS_ONE: u32 = u32::MAX;

pub const UNKNOWN: Value = Value { place: ValueBase::Number, at: 0, step: 1, source: 0 };

impl Value {
    pub fn number(at: i64) -> Value {
        Value { at, step: 0, ..UNKNOWN }
    }

    pub fn exact(place: ValueBase, at: i64) -> Value {
        Value { place, at, step: 0, source: 0 }
    }

    /// An unknown number of its own.
    pub fn unknown(source: u32) -> Value {
        Value { source, ..UNKNOWN }
    }

    pub fn is_number(self) -> bool {
        self.place == ValueBase::Number
    }

    /// Whether it leads to code.
    pub fn leads_to_code(self) -> bool {
        matches!(self.place, ValueBase::Code | ValueBase::Data(_) | ValueBase::Caller(_))
    }

    /// The number, or the offset.
    pub fn exactly(self) -> Option<i64> {
        (self.step == 0).then_some(self.at)
    }

    pub fn plus(self, other: Value) -> Value {
        let place = match (self.place, other.place) {
            (place, ValueBase::Number) | (ValueBase::Number, place) => place,
            (ValueBase::Code, _) | (_, ValueBase::Code) => ValueBase::Code,
            _ => return UNKNOWN,
        };
        let mark = if place == ValueBase::Code { self.mark() | other.mark() } else { 0 };
        let (step, source) = match (self.step, other.step) {
            (0, step) => (step, other.source),
            (step, 0) => (step, self.source),
            (one, two) if self.source == other.source && self.source != 0 => {
                (one.wrapping_add(two), self.source)
            }
            (one, two) => (gcd(one, two), 0),
        };
        let source = if place == ValueBase::Code { mark } else { source };
        Value { place, at: self.at.wrapping_add(other.at), step, source }
    }

    fn mark(self) -> u32 {
        if self.place == ValueBase::Code { self.source } else { 0 }
    }

    pub fn minus(self, other: Value) -> Value {
        match (self.place, other.place) {
            (_, ValueBase::Number) => {
                let source = if self.place == ValueBase::Code { self.source } else { 0 };
                let step = gcd(self.step, other.step);
                let is_one = self.place == ValueBase::Code && other.exactly() == Some(1);
                let source = if is_one { LESS_ONE } else { source };
                Value { at: self.at.wrapping_sub(other.at), step, source, ..self }
            }
            _ => UNKNOWN,
        }
    }

    pub fn times(self, factor: i64) -> Value {
        match self.place {
            ValueBase::Number => {
                let step = self.step.wrapping_mul(factor.unsigned_abs());
                Value {
                    at: self.at.wrapping_mul(factor),
                    step: if self.step != 0 && step == 0 { 1 } else { step },
                    ..self
                }
            }
            _ => UNKNOWN,
        }
    }

    /// Some number of its place: an address was rounded, or bits of it were changed.
    pub fn blurred(self) -> Value {
        match self.place {
            ValueBase::Number | ValueBase::Import(_) => UNKNOWN,
            place => Value { place, at: self.at, step: 1, source: 0 },
        }
    }
}

pub fn gcd(one: u64, two: u64) -> u64 {
    let (mut one, mut two) = (one, two);
    while two != 0 {
        (one, two) = (two, one % two);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiples_of_one_number_add_up() {
        let index = Value::unknown(7);
        let three = index.plus(index.times(2));
        assert_eq!((three.times(8).step, index.times(8).step), (24, 8));
        let table = Value::exact(ValueBase::Data(0), 8);
        assert_eq!(
            table.plus(three.times(8)),
            Value { place: ValueBase::Data(0), at: 8, step: 24, source: 7 }
        );
        assert_eq!(table.plus(index.times(16)).plus(Value::unknown(8).times(24)).step, 8);
    }

    #[test]
    fn offsets_of_code_are_code() {
        let code = Value::exact(ValueBase::Code, 100);
        assert_eq!(code.plus(UNKNOWN).place, ValueBase::Code);
        assert_eq!(code.blurred().place, ValueBase::Code);
        assert_eq!(code.minus(code).place, ValueBase::Number, "a distance");
        assert_eq!(code.minus(Value::number(1)).source, LESS_ONE);
    }
}
