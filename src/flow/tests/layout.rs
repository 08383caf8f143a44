//! Any layout of a graph is the same graph, and any bytes are a graph or a refusal.

use super::{assembled, check, flow, function, whole_hash};
use crate::elf::object_file::ObjectFile;
use crate::flow::Flows;
use proptest::prelude::*;
use std::fmt::Write;

/// A function as a list of blocks: what each calls, and where it goes on.
type Plan = Vec<(u8, u8, u8)>;

/// Writes a plan down with its blocks in an order, short and long jumps, and padding.
pub(super) fn written(plan: &Plan, order: &[usize], choices: u64) -> String {
    let mut text = String::new();
    let choose = |number: usize, of: u64| (choices >> (number % 60)) & of == 0;
    for (place, &number) in order.iter().enumerate() {
        let (call, one, other) = plan[number];
        let (one, other) =
            (usize::from(one) % (plan.len() + 1), usize::from(other) % (plan.len() + 1));
        let size = if choose(place, 1) { "{disp32}" } else { "" };
        if choose(place, 2) {
            text.push_str(".p2align 4\n");
        }
        let _ = writeln!(text, ".Lb{number}: call c{call}\ntestl %eax, %eax");
        let next = order.get(place + 1).copied();
        // Without the jump the next one follows.
        let _ = match (next == Some(other), choose(place, 4)) {
            (true, true) => writeln!(text, "{size} je .Lb{one}"),
            (_, true) => writeln!(text, "{size} je .Lb{one}\njmp .Lb{other}"),
            (_, false) => writeln!(text, "{size} jne .Lb{other}\njmp .Lb{one}"),
        };
    }
    let _ = writeln!(text, ".Lb{}: ret", plan.len());
    function(&text)
}

/// How many blocks of a plan can be reached.
pub(super) fn reachable(plan: &Plan) -> Vec<bool> {
    let mut reached = vec![false; plan.len() + 1];
    let mut open = vec![0];
    while let Some(number) = open.pop() {
        if !std::mem::replace(&mut reached[number], true)
            && let Some((_, one, other)) = plan.get(number)
        {
            open.extend([one, other].map(|to| usize::from(*to) % (plan.len() + 1)));
        }
    }
    reached
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_layout_of_a_graph_is_the_same(
        plan in prop::collection::vec((0u8..3, any::<u8>(), any::<u8>()), 1..9),
        keys in prop::collection::vec(any::<u32>(), 9),
        choices in any::<[u64; 2]>(),
    ) {
        let reached = reachable(&plan);
        let mut order: Vec<usize> = (0..plan.len()).filter(|number| reached[*number]).collect();
        prop_assume!(reached[plan.len()]);
        let one = flow(&assembled(&written(&plan, &order, choices[0])), "f");
        order[1..].sort_by_key(|number| keys[*number]);
        let other = flow(&assembled(&written(&plan, &order, choices[1])), "f");
        prop_assert_eq!(whole_hash(&one), whole_hash(&other));
        // Another callee anywhere is another function.
        let mut changed = plan.clone();
        changed[order[order.len() - 1]].0 = 9;
        let changed = flow(&assembled(&written(&changed, &order, choices[1])), "f");
        prop_assert_ne!(whole_hash(&one), whole_hash(&changed));
    }

    #[test]
    fn any_bytes_are_a_graph_or_a_refusal(codes in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..24), 64)) {
        let mut text = String::new();
        for (number, code) in codes.iter().enumerate() {
            let bytes: Vec<String> = code.iter().map(u8::to_string).collect();
            let _ = writeln!(text, ".section .text.f{number},\"ax\",@progbits\n.type f{number},@function\nf{number}: .byte {}", bytes.join(","));
        }
        let object = assembled(&text);
        let object = ObjectFile::parse(&object).unwrap();
        let flows = Flows::new(&object);
        for (number, section) in object.sections.iter().enumerate().filter(|(_, it)| it.is_code()) {
            if let Ok(flow) = flows.of_function(number) {
                check(&flow, section.size);
            }
        }
    }
}
