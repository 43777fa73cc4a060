//! The compiled form of a filter: tests, each with the next test if it is true and if it is false.
//! Only the tests needed for a row are run, without a stack and without allocation.

use super::PropertyLookup;
use super::step::{Step, Test};

#[derive(Clone, Debug)]
pub(super) struct Program {
    instructions: Vec<Instruction>,
}

#[derive(Clone, Debug)]
struct Instruction {
    test: Test,
    if_true: Next,
    if_false: Next,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Test(usize),
    Accept,
    Reject,
}

/// A compiled operand, without the targets of its exits.
struct Operand {
    first: usize,
    /// The exits that make it true, or false, whose targets are still to be set.
    true_exits: Vec<Exit>,
    false_exits: Vec<Exit>,
}

/// One of the two ways out of an instruction.
#[derive(Clone, Copy)]
struct Exit {
    instruction: usize,
    when: bool,
}

impl Program {
    pub(super) fn new(steps: &[Step]) -> Self {
        let mut program = Self { instructions: Vec::new() };
        let mut operands: Vec<Operand> = Vec::new();
        for step in steps {
            let operand = match step {
                Step::Test(test) => Some(program.test(test.clone())),
                Step::Not => operands.pop().map(|Operand { first, true_exits, false_exits }| {
                    Operand { first, true_exits: false_exits, false_exits: true_exits }
                }),
                Step::And | Step::Or => match (operands.pop(), operands.pop()) {
                    (Some(right), Some(left)) => Some(program.join(left, right, step)),
                    _ => None,
                },
            };
            operands.extend(operand);
        }
        if let Some(whole) = operands.pop() {
            program.lead(&whole.true_exits, Next::Accept);
            program.lead(&whole.false_exits, Next::Reject);
        }
        program
    }

    pub(super) fn len(&self) -> usize {
        self.instructions.len()
    }

    fn test(&mut self, test: Test) -> Operand {
        let instruction = self.instructions.len();
        self.instructions.push(Instruction { test, if_true: Next::Accept, if_false: Next::Reject });
        let exits = |when| vec![Exit { instruction, when }];
        Operand { first: instruction, true_exits: exits(true), false_exits: exits(false) }
    }

    fn join(&mut self, left: Operand, right: Operand, step: &Step) -> Operand {
        let first = left.first;
        if *step == Step::And {
            self.lead(&left.true_exits, Next::Test(right.first));
            let false_exits = together(left.false_exits, right.false_exits);
            Operand { first, true_exits: right.true_exits, false_exits }
        } else {
            self.lead(&left.false_exits, Next::Test(right.first));
            let true_exits = together(left.true_exits, right.true_exits);
            Operand { first, true_exits, false_exits: right.false_exits }
        }
    }

    fn lead(&mut self, exits: &[Exit], next: Next) {
        for exit in exits {
            let instruction = &mut self.instructions[exit.instruction];
            if exit.when {
                instruction.if_true = next;
            } else {
                instruction.if_false = next;
            }
        }
    }

    pub(super) fn accepts(&self, row: &impl PropertyLookup) -> bool {
        // Every exit leads to a later test, so this ends.
        let mut at = 0;
        while let Some(Instruction { test, if_true, if_false }) = self.instructions.get(at) {
            let holds = match test {
                Test::Constant(constant) => *constant,
                Test::Compare { property, operator, constant } => {
                    operator.holds(row.property(property), constant)
                }
            };
            match if holds { if_true } else { if_false } {
                Next::Test(next) => at = *next,
                Next::Accept => return true,
                Next::Reject => return false,
            }
        }
        true
    }
}

/// The shorter one is copied, so that a long chain is not copied at each step.
fn together(left: Vec<Exit>, right: Vec<Exit>) -> Vec<Exit> {
    let (mut longer, shorter) =
        if left.len() >= right.len() { (left, right) } else { (right, left) };
    longer.extend(shorter);
    longer
}
