//! Parses tokens to steps, by the precedence of the operators: `not` before `and` before `or`.

use super::lexer::{Lexer, Token};
use super::step::{Operator, Step, Test};
use super::{COMPARISONS_MAX, InvalidFilter};
use crate::table::Value;

/// Operators that wait for their right operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Open,
    Not,
    And,
    Or,
}

pub(super) fn parse(text: &str) -> Result<Vec<Step>, InvalidFilter> {
    let mut lexer = Lexer::new(text)?;
    let mut parser = Parser { steps: Vec::new(), waiting: Vec::new(), comparisons: 0 };
    if *lexer.peek() == Token::End {
        return Ok(parser.steps);
    }
    loop {
        parser.operand(&mut lexer)?;
        if !parser.what_follows(&mut lexer)? {
            return Ok(parser.steps);
        }
    }
}

struct Parser {
    steps: Vec<Step>,
    waiting: Vec<Waiting>,
    comparisons: usize,
}

impl Parser {
    /// Reads up to the end of a test.
    fn operand(&mut self, lexer: &mut Lexer<'_>) -> Result<(), InvalidFilter> {
        loop {
            match lexer.peek() {
                Token::Open => self.waiting.push(Waiting::Open),
                Token::Word("not") => self.waiting.push(Waiting::Not),
                Token::Word(_) | Token::Constant(_) | Token::Close | Token::End => break,
            }
            lexer.advance()?;
        }
        self.comparisons += 1;
        if self.comparisons > COMPARISONS_MAX {
            return Err(lexer.invalid("there are too many comparisons"));
        }
        let test = test(lexer)?;
        self.steps.push(Step::Test(test));
        self.end_negations();
        Ok(())
    }

    /// Reads what follows a test: closing parentheses, then `and` or `or`. False at the end.
    fn what_follows(&mut self, lexer: &mut Lexer<'_>) -> Result<bool, InvalidFilter> {
        loop {
            let unexpected = lexer.invalid("an operator or the end is expected");
            match lexer.advance()? {
                Token::Close => {
                    self.end(&[Waiting::And, Waiting::Or]);
                    if self.waiting.pop() != Some(Waiting::Open) {
                        return Err(unexpected);
                    }
                    self.end_negations();
                }
                Token::Word("and") => {
                    self.end(&[Waiting::And]);
                    self.waiting.push(Waiting::And);
                    return Ok(true);
                }
                Token::Word("or") => {
                    self.end(&[Waiting::And, Waiting::Or]);
                    self.waiting.push(Waiting::Or);
                    return Ok(true);
                }
                Token::End => {
                    self.end(&[Waiting::And, Waiting::Or]);
                    let open = lexer.invalid("a parenthesis is not closed");
                    return if self.waiting.is_empty() { Ok(false) } else { Err(open) };
                }
                Token::Word(_) | Token::Constant(_) | Token::Open => return Err(unexpected),
            }
        }
    }

    fn end_negations(&mut self) {
        self.end(&[Waiting::Not]);
    }

    fn end(&mut self, which: &[Waiting]) {
        while let Some(waiting) = self.waiting.pop_if(|waiting| which.contains(waiting)) {
            match waiting {
                Waiting::Not => self.steps.push(Step::Not),
                Waiting::And => self.steps.push(Step::And),
                Waiting::Or => self.steps.push(Step::Or),
                Waiting::Open => {}
            }
        }
    }
}

enum Operand<'a> {
    Property(&'a str),
    Constant(Value),
}

fn test(lexer: &mut Lexer<'_>) -> Result<Test, InvalidFilter> {
    let unexpected = lexer.invalid("this cannot be a condition");
    let left = operand(lexer)?;
    let operator = match lexer.peek() {
        Token::Word(word) => Operator::named(word),
        Token::Constant(_) | Token::Open | Token::Close | Token::End => None,
    };
    let Some(operator) = operator else {
        return match left {
            Operand::Property(name) => Ok(compare(name, Operator::Equal, Value::Boolean(true))),
            Operand::Constant(Value::Boolean(constant)) => Ok(Test::Constant(constant)),
            Operand::Constant(_) => Err(unexpected),
        };
    };
    lexer.advance()?;
    let two_alike = lexer.invalid("a property has to be compared with a constant");
    match (left, operand(lexer)?) {
        (Operand::Property(name), Operand::Constant(constant)) => {
            Ok(compare(name, operator, constant))
        }
        (Operand::Constant(constant), Operand::Property(name)) => {
            Ok(compare(name, operator.mirrored(), constant))
        }
        (Operand::Property(_), Operand::Property(_))
        | (Operand::Constant(_), Operand::Constant(_)) => Err(two_alike),
    }
}

fn compare(property: &str, operator: Operator, constant: Value) -> Test {
    Test::Compare { property: property.to_owned(), operator, constant }
}

fn operand<'a>(lexer: &mut Lexer<'a>) -> Result<Operand<'a>, InvalidFilter> {
    let unexpected = lexer.invalid("a property or a constant is expected");
    match lexer.advance()? {
        // The service has no null; `myCol eq null` is InvalidInput
        // (github.com/Azure/Azurite/issues/2471).
        Token::Word("null" | "not" | "and" | "or") => Err(unexpected),
        Token::Word(name) => Ok(Operand::Property(name)),
        Token::Constant(constant) => Ok(Operand::Constant(constant)),
        Token::Open | Token::Close | Token::End => Err(unexpected),
    }
}
