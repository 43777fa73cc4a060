//! Parses tokens to a statement. What the dialect does not have (joins, groups, orders, several
//! aggregates) is a syntax error, as in the service.

#![allow(clippy::wildcard_enum_match_arm, reason = "every other token is refused")]

use super::SyntaxError;
use super::ast::{
    Aggregate, Arithmetic, Comparison, DatePart, Expression, Function, Kind, LikePattern, Output,
    Projection, Reference, Segment, Statement, TrimSide,
};
use super::lexer::{Token, tokens};

/// The most columns that a SELECT may name (the language reference).
const COLUMNS_MAX: usize = 49;
/// The maximum recursion depth of evaluating and dropping an expression.
const DEPTH_MAX: usize = 128;
/// The smallest argument of `sys.split` (the language reference).
const SPLIT_BYTES_MIN: u64 = 10 * 1024 * 1024;
/// Words that end an expression or begin another part of the statement; a column with such a name
/// needs double quotes.
const RESERVED: [&str; 23] = [
    "SELECT", "FROM", "WHERE", "LIMIT", "AS", "AND", "OR", "NOT", "IN", "IS", "LIKE", "ESCAPE",
    "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "GROUP", "ORDER", "HAVING", "JOIN", "UNION",
];

type Parsed<T> = Result<T, SyntaxError>;

pub fn parse(text: &str) -> Parsed<Statement> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, next: 0, depth: 0, references: Vec::new() };
    parser.statement()
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
    references: Vec<Reference>,
}

impl Parser {
    fn statement(&mut self) -> Parsed<Statement> {
        self.keyword("SELECT")?;
        let projection = self.projection()?;
        self.keyword("FROM")?;
        let (from, alias) = self.table()?;
        let filter = if self.take_word("WHERE") { Some(self.expression()?) } else { None };
        let limit = if self.take_word("LIMIT") { Some(self.count()?) } else { None };
        while self.take(";") {}
        if *self.peek() != Token::End {
            return self.fail("the statement should end");
        }
        if matches!(projection, Projection::Split(_)) && (filter.is_some() || limit.is_some()) {
            return self.fail("sys.split takes neither WHERE nor LIMIT");
        }
        let mut references = std::mem::take(&mut self.references);
        for reference in &mut references {
            without_table(reference, alias.as_deref());
        }
        Ok(Statement { projection, from, filter, limit, references })
    }

    fn projection(&mut self) -> Parsed<Projection> {
        if self.take("*") {
            return Ok(Projection::Star);
        }
        if let Some(projection) = self.split()? {
            return Ok(projection);
        }
        if let Some(projection) = self.aggregate()? {
            return Ok(projection);
        }
        let mut columns = Vec::new();
        loop {
            if columns.len() == COLUMNS_MAX {
                return self.fail("more than 49 columns are selected");
            }
            let expression = self.expression()?;
            columns.push(Output { expression, alias: self.alias()? });
            if !self.take(",") {
                return Ok(Projection::Columns(columns));
            }
        }
    }

    fn split(&mut self) -> Parsed<Option<Projection>> {
        let is_split = self.is_word_at(0, "SYS")
            && self.is_sign_at(1, ".")
            && self.is_word_at(2, "SPLIT")
            && self.is_sign_at(3, "(");
        if !is_split {
            return Ok(None);
        }
        self.next += 4;
        let bytes = self.count()?;
        if bytes < SPLIT_BYTES_MIN {
            return self.fail("sys.split takes at least 10485760");
        }
        self.sign(")")?;
        Ok(Some(Projection::Split(bytes)))
    }

    fn aggregate(&mut self) -> Parsed<Option<Projection>> {
        let Token::Word(word) = self.peek() else { return Ok(None) };
        let function = match word.to_ascii_uppercase().as_str() {
            "COUNT" => Aggregate::Count,
            "AVG" | "AVERAGE" => Aggregate::Average,
            "MIN" => Aggregate::Minimum,
            "MAX" => Aggregate::Maximum,
            "SUM" => Aggregate::Sum,
            _ => return Ok(None),
        };
        if !self.is_sign_at(1, "(") {
            return Ok(None);
        }
        self.next += 2;
        let argument = if function == Aggregate::Count && self.take("*") {
            None
        } else {
            Some(self.expression()?)
        };
        self.sign(")")?;
        Ok(Some(Projection::Aggregate { function, argument, alias: self.alias()? }))
    }

    /// `AS name`, or a name alone.
    fn alias(&mut self) -> Parsed<Option<String>> {
        if self.take_word("AS") {
            return match self.advance() {
                Token::Word(name) if !is_reserved(&name) => Ok(Some(name)),
                Token::Name(name) => Ok(Some(name)),
                _ => self.fail("a name should follow AS"),
            };
        }
        match self.peek() {
            Token::Word(name) if !is_reserved(name) => {}
            Token::Name(_) => {}
            _ => return Ok(None),
        }
        match self.advance() {
            Token::Word(name) | Token::Name(name) => Ok(Some(name)),
            _ => Ok(None),
        }
    }

    /// The path after `BlobStorage`, and the alias of the rows.
    fn table(&mut self) -> Parsed<(Vec<Segment>, Option<String>)> {
        self.keyword("BLOBSTORAGE")?;
        let mut path = Vec::new();
        loop {
            if self.take(".") {
                path.push(self.key()?);
            } else if self.take("[") {
                path.push(if self.take("*") { Segment::Each } else { self.index()? });
                self.sign("]")?;
            } else {
                break;
            }
        }
        // `BlobStorage` and `BlobStorage[*]` are the same.
        if path.first() == Some(&Segment::Each) {
            path.remove(0);
        }
        Ok((path, self.alias()?))
    }

    fn count(&mut self) -> Parsed<u64> {
        match self.advance() {
            Token::Integer(number) => Ok(number.unsigned_abs()),
            _ => self.fail("a number should stand"),
        }
    }

    fn index(&mut self) -> Parsed<Segment> {
        let count = self.count()?;
        usize::try_from(count).map(Segment::Index).or_else(|_| self.fail("the index is too large"))
    }

    fn key(&mut self) -> Parsed<Segment> {
        match self.advance() {
            Token::Word(name) => Ok(Segment::Key { name, quoted: false }),
            Token::Name(name) => Ok(Segment::Key { name, quoted: true }),
            _ => self.fail("a name should follow the dot"),
        }
    }

    fn expression(&mut self) -> Parsed<Expression> {
        self.nested(Self::either)
    }

    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Parsed<Expression>,
    ) -> Parsed<Expression> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail("the expression is nested too deeply");
        }
        let expression = inner(self)?;
        self.depth -= 1;
        Ok(expression)
    }

    fn either(&mut self) -> Parsed<Expression> {
        let first = self.both()?;
        if !self.is_word_at(0, "OR") {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.take_word("OR") {
            terms.push(self.both()?);
        }
        Ok(Expression::Or(terms))
    }

    fn both(&mut self) -> Parsed<Expression> {
        let first = self.negation()?;
        if !self.is_word_at(0, "AND") {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.take_word("AND") {
            terms.push(self.negation()?);
        }
        Ok(Expression::And(terms))
    }

    fn negation(&mut self) -> Parsed<Expression> {
        if self.take_word("NOT") {
            return Ok(not(self.nested(Self::negation)?));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let left = self.sum()?;
        if let Some(comparison) = self.comparison_sign() {
            let right = self.sum()?;
            return Ok(Expression::Compare(comparison, Box::new((left, right))));
        }
        if self.take_word("IS") {
            return self.is(left);
        }
        let negated = self.is_word_at(0, "NOT");
        if negated {
            self.next += 1;
        }
        let test = if self.take_word("BETWEEN") {
            let lowest = self.sum()?;
            self.keyword("AND")?;
            Expression::Between(Box::new((left, lowest, self.sum()?)))
        } else if self.take_word("IN") {
            self.sign("(")?;
            Expression::In(Box::new(left), self.list()?)
        } else if self.take_word("LIKE") {
            let pattern = self.sum()?;
            Expression::Like(Box::new(left), LikePattern::new(pattern, self.escape()?))
        } else if negated {
            return self.fail("BETWEEN, IN or LIKE should follow NOT");
        } else {
            return Ok(left);
        };
        Ok(if negated { not(test) } else { test })
    }

    fn comparison_sign(&mut self) -> Option<Comparison> {
        let Token::Sign(sign) = self.peek() else { return None };
        let comparison = match *sign {
            "=" => Comparison::Equal,
            "!=" | "<>" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            _ => return None,
        };
        self.next += 1;
        Some(comparison)
    }

    fn is(&mut self, value: Expression) -> Parsed<Expression> {
        let negated = self.take_word("NOT");
        let test = if self.take_word("NULL") {
            Expression::IsNull(Box::new(value))
        } else if self.take_word("MISSING") {
            Expression::IsMissing(Box::new(value))
        } else {
            return self.fail("NULL or MISSING should follow IS");
        };
        Ok(if negated { not(test) } else { test })
    }

    fn escape(&mut self) -> Parsed<Option<char>> {
        if !self.take_word("ESCAPE") {
            return Ok(None);
        }
        let Token::Text(text) = self.advance() else {
            return self.fail("a text should follow ESCAPE");
        };
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(Some(letter)),
            _ => self.fail("one character should follow ESCAPE"),
        }
    }

    fn sum(&mut self) -> Parsed<Expression> {
        let mut left = self.product()?;
        let mut terms = 0;
        loop {
            let arithmetic = if self.take("+") {
                Arithmetic::Add
            } else if self.take("-") {
                Arithmetic::Subtract
            } else {
                return Ok(left);
            };
            terms = self.another(terms)?;
            left = Expression::Calculate(arithmetic, Box::new((left, self.product()?)));
        }
    }

    fn product(&mut self) -> Parsed<Expression> {
        let mut left = self.factor()?;
        let mut factors = 0;
        loop {
            let arithmetic = if self.take("*") {
                Arithmetic::Multiply
            } else if self.take("/") {
                Arithmetic::Divide
            } else if self.take("%") {
                Arithmetic::Remainder
            } else {
                return Ok(left);
            };
            factors = self.another(factors)?;
            left = Expression::Calculate(arithmetic, Box::new((left, self.factor()?)));
        }
    }

    /// A chain of operators nests to the left, so its depth is its length.
    fn another(&self, operators: usize) -> Parsed<usize> {
        if operators == DEPTH_MAX {
            return self.fail("the expression is nested too deeply");
        }
        Ok(operators + 1)
    }

    fn factor(&mut self) -> Parsed<Expression> {
        if self.take("-") {
            return Ok(match self.nested(Self::factor)? {
                Expression::Integer(number) => Expression::Integer(-number),
                Expression::Float(number) => Expression::Float(-number),
                other => Expression::Negate(Box::new(other)),
            });
        }
        if self.take("+") {
            return self.nested(Self::factor);
        }
        self.primary()
    }

    fn primary(&mut self) -> Parsed<Expression> {
        match self.advance() {
            Token::Integer(number) => Ok(Expression::Integer(number)),
            Token::Float(number) => Ok(Expression::Float(number)),
            Token::Text(text) => Ok(Expression::Text(text)),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.sign(")")?;
                Ok(inner)
            }
            Token::Name(name) => self.reference(Segment::Key { name, quoted: true }),
            Token::Word(word) => self.word(word),
            Token::Sign(_) | Token::End => {
                self.next -= 1;
                self.fail("a value should stand")
            }
        }
    }

    fn word(&mut self, word: String) -> Parsed<Expression> {
        let upper = word.to_ascii_uppercase();
        if self.is_sign_at(0, "(") && !is_reserved(&upper) {
            self.next += 1;
            return self.call(&upper);
        }
        match upper.as_str() {
            "NULL" => Ok(Expression::Null),
            "TRUE" => Ok(Expression::Boolean(true)),
            "FALSE" => Ok(Expression::Boolean(false)),
            "CASE" => self.nested(Self::case),
            _ if is_reserved(&upper) => {
                self.next -= 1;
                self.fail("a value should stand")
            }
            _ => self.reference(Segment::Key { name: word, quoted: false }),
        }
    }

    fn reference(&mut self, first: Segment) -> Parsed<Expression> {
        let mut path = vec![first];
        loop {
            if self.take(".") {
                path.push(self.key()?);
            } else if self.take("[") {
                path.push(self.index()?);
                self.sign("]")?;
            } else {
                break;
            }
        }
        let reference = Reference { path };
        let number = self.references.iter().position(|known| *known == reference);
        Ok(Expression::Column(number.unwrap_or_else(|| {
            self.references.push(reference);
            self.references.len() - 1
        })))
    }

    fn case(&mut self) -> Parsed<Expression> {
        let subject = if self.is_word_at(0, "WHEN") { None } else { Some(self.expression()?) };
        let mut branches = Vec::new();
        while self.take_word("WHEN") {
            let when = self.expression()?;
            self.keyword("THEN")?;
            let condition = match &subject {
                Some(subject) => {
                    Expression::Compare(Comparison::Equal, Box::new((subject.clone(), when)))
                }
                None => when,
            };
            branches.push((condition, self.expression()?));
        }
        if branches.is_empty() {
            return self.fail("WHEN should follow CASE");
        }
        let otherwise = if self.take_word("ELSE") { self.expression()? } else { Expression::Null };
        self.keyword("END")?;
        Ok(Expression::Case(branches, Box::new(otherwise)))
    }

    /// A call of a function, after the opening parenthesis.
    fn call(&mut self, name: &str) -> Parsed<Expression> {
        let (function, arguments) = match name {
            "CAST" => return self.cast(),
            "TRIM" => self.trim()?,
            "EXTRACT" => {
                let part = self.date_part()?;
                self.keyword("FROM")?;
                (Function::Extract(part), self.list()?)
            }
            "DATE_ADD" | "DATE_DIFF" => {
                let part = self.date_part()?;
                if matches!(part, DatePart::TimezoneHour | DatePart::TimezoneMinute) {
                    return self.fail("a part of the time zone cannot be added or counted");
                }
                self.sign(",")?;
                let adds = name == "DATE_ADD";
                let function =
                    if adds { Function::DateAdd(part) } else { Function::DateDifference(part) };
                (function, self.list()?)
            }
            "SUBSTRING" => (Function::Substring, self.substring()?),
            "CHAR_LENGTH" | "CHARACTER_LENGTH" => (Function::CharacterLength, self.list()?),
            "LOWER" => (Function::Lower, self.list()?),
            "UPPER" => (Function::Upper, self.list()?),
            "TO_STRING" => (Function::ToString, self.list()?),
            "TO_TIMESTAMP" => (Function::ToTimestamp, self.list()?),
            "UTCNOW" if self.take(")") => (Function::UtcNow, Vec::new()),
            "COALESCE" => (Function::Coalesce, self.list()?),
            "NULLIF" => (Function::NullIf, self.list()?),
            _ => return self.fail("the function is not known here"),
        };
        let fits = match function {
            Function::CharacterLength
            | Function::Lower
            | Function::Upper
            | Function::Extract(_)
            | Function::ToTimestamp => arguments.len() == 1,
            Function::DateAdd(_)
            | Function::DateDifference(_)
            | Function::NullIf
            | Function::ToString => arguments.len() == 2,
            Function::Substring => matches!(arguments.len(), 2 | 3),
            Function::Trim(_) | Function::UtcNow | Function::Coalesce => true,
        };
        if !fits {
            return self.fail("the function takes another number of arguments");
        }
        Ok(Expression::Call(function, arguments))
    }

    /// At least one expression, up to the closing parenthesis.
    fn list(&mut self) -> Parsed<Vec<Expression>> {
        let mut list = vec![self.expression()?];
        while self.take(",") {
            list.push(self.expression()?);
        }
        self.sign(")")?;
        Ok(list)
    }

    fn cast(&mut self) -> Parsed<Expression> {
        let value = self.expression()?;
        self.keyword("AS")?;
        let Token::Word(kind) = self.advance() else { return self.fail("a type should follow AS") };
        let kind = match kind.to_ascii_uppercase().as_str() {
            "INT" | "INTEGER" | "BIGINT" => Kind::Integer,
            "FLOAT" | "DOUBLE" => Kind::Float,
            "STRING" | "VARCHAR" => Kind::Text,
            "TIMESTAMP" => Kind::Timestamp,
            "BOOLEAN" | "BOOL" => Kind::Boolean,
            _ => return self.fail("the type is not known here"),
        };
        self.sign(")")?;
        Ok(Expression::Cast(Box::new(value), kind))
    }

    /// `TRIM(text)`, `TRIM(characters FROM text)`, with or without BOTH, LEADING or TRAILING.
    fn trim(&mut self) -> Parsed<(Function, Vec<Expression>)> {
        let side = if self.take_word("LEADING") {
            TrimSide::Leading
        } else if self.take_word("TRAILING") {
            TrimSide::Trailing
        } else {
            self.take_word("BOTH");
            TrimSide::Both
        };
        let mut arguments = Vec::new();
        if !self.take_word("FROM") {
            arguments.push(self.expression()?);
        }
        if arguments.is_empty() || self.take_word("FROM") {
            arguments.insert(0, self.expression()?);
        }
        self.sign(")")?;
        Ok((Function::Trim(side), arguments))
    }

    /// `SUBSTRING(text, start, length)` or `SUBSTRING(text FROM start FOR length)`.
    fn substring(&mut self) -> Parsed<Vec<Expression>> {
        let mut arguments = vec![self.expression()?];
        if !self.take_word("FROM") {
            self.sign(",")?;
            arguments.extend(self.list()?);
            return Ok(arguments);
        }
        arguments.push(self.expression()?);
        if self.take_word("FOR") {
            arguments.push(self.expression()?);
        }
        self.sign(")")?;
        Ok(arguments)
    }

    fn date_part(&mut self) -> Parsed<DatePart> {
        let part = match self.advance() {
            Token::Word(part) | Token::Text(part) => part.to_ascii_uppercase(),
            _ => return self.fail("a part of a date should stand"),
        };
        Ok(match part.as_str() {
            "YEAR" => DatePart::Year,
            "MONTH" => DatePart::Month,
            "DAY" => DatePart::Day,
            "HOUR" => DatePart::Hour,
            "MINUTE" => DatePart::Minute,
            "SECOND" => DatePart::Second,
            "TIMEZONE_HOUR" => DatePart::TimezoneHour,
            "TIMEZONE_MINUTE" => DatePart::TimezoneMinute,
            _ => return self.fail("a part of a date should stand"),
        })
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    /// Takes the next token; stays at [`Token::End`].
    fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.is_sign_at(0, sign);
        self.next += usize::from(found);
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word_at(0, word);
        self.next += usize::from(found);
        found
    }

    fn is_sign_at(&self, ahead: usize, sign: &str) -> bool {
        let token = self.tokens.get(self.next + ahead);
        matches!(token, Some((Token::Sign(found), _)) if *found == sign)
    }

    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        let token = self.tokens.get(self.next + ahead);
        matches!(token, Some((Token::Word(found), _)) if found.eq_ignore_ascii_case(word))
    }

    fn sign(&mut self, sign: &str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { self.fail(&format!("{sign} should stand")) }
    }

    fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word) { Ok(()) } else { self.fail(&format!("{word} should stand")) }
    }

    fn fail<T>(&self, reason: &str) -> Parsed<T> {
        Err(SyntaxError { reason: reason.to_owned(), at: self.tokens[self.next].1 })
    }
}

fn not(expression: Expression) -> Expression {
    Expression::Not(Box::new(expression))
}

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}

/// `BlobStorage.name` and `alias.name` mean `name`.
fn without_table(reference: &mut Reference, alias: Option<&str>) {
    let [Segment::Key { name, .. }, Segment::Key { .. }, ..] = reference.path.as_slice() else {
        return;
    };
    let is_alias = alias.is_some_and(|alias| name.eq_ignore_ascii_case(alias));
    if is_alias || name.eq_ignore_ascii_case("BlobStorage") {
        reference.path.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Segment {
        Segment::Key { name: name.to_owned(), quoted: false }
    }

    #[test]
    fn a_statement_has_columns_a_table_a_filter_and_a_limit() {
        let statement =
            parse("select _2 AS two, \"Name\" n from blobstorage where _1 > 250 limit 3;")
                .expect("a statement");
        let Projection::Columns(columns) = &statement.projection else { panic!("columns") };
        assert_eq!(columns[0].alias.as_deref(), Some("two"));
        assert_eq!(columns[1].alias.as_deref(), Some("n"));
        assert_eq!(statement.limit, Some(3));
        assert_eq!(statement.references[0].ordinal(), Some(1));
        assert_eq!(
            statement.filter,
            Some(Expression::Compare(
                Comparison::Greater,
                Box::new((Expression::Column(2), Expression::Integer(250)))
            ))
        );
    }

    #[test]
    fn the_table_may_be_a_path_into_each_document() {
        let from = |text: &str| parse(text).expect("a statement").from;
        assert_eq!(from("SELECT * FROM BlobStorage"), []);
        assert_eq!(from("SELECT * FROM BlobStorage[*]"), []);
        assert_eq!(
            from("SELECT latitude FROM BlobStorage[*].warehouses[*]"),
            [key("warehouses"), Segment::Each]
        );
        assert_eq!(from("SELECT length FROM BlobStorage[*].dimensions"), [key("dimensions")]);
    }

    #[test]
    fn the_table_or_its_alias_before_a_column_says_nothing() {
        let statement = parse("SELECT s.a, BlobStorage.b, s FROM BlobStorage s").expect("one");
        let names: Vec<_> = statement.references.iter().map(|r| r.path.as_slice()).collect();
        assert_eq!(names, [[key("a")], [key("b")], [key("s")]]);
    }

    #[test]
    fn products_bind_more_than_sums_and_those_more_than_comparisons() {
        let statement = parse("SELECT 1 + 2 * 3 > 4 AND NOT 5 = 6 FROM BlobStorage").expect("one");
        let Projection::Columns(columns) = statement.projection else { panic!("columns") };
        let Expression::And(terms) = &columns[0].expression else { panic!("and") };
        let Expression::Compare(Comparison::Greater, sides) = &terms[0] else { panic!("greater") };
        let Expression::Calculate(Arithmetic::Add, sum) = &sides.0 else { panic!("sum") };
        assert!(matches!(sum.1, Expression::Calculate(Arithmetic::Multiply, _)));
        assert!(matches!(terms[1], Expression::Not(_)));
    }

    #[test]
    fn everything_of_the_language_reference_is_understood() {
        for text in [
            "SELECT sys.split(10485760)FROM BlobStorage",
            "SELECT COUNT(*) FROM BlobStorage",
            "SELECT AVERAGE(price) a FROM BlobStorage WHERE x IS NOT MISSING",
            "SELECT TRIM(BOTH '123' FROM '1112211Microsoft22211122') FROM BlobStorage",
            "SELECT TRIM(LEADING FROM a), TRIM(a), TRIM('x' FROM a) FROM BlobStorage",
            "SELECT SUBSTRING('123456789', 1, 5), SUBSTRING(a FROM 2 FOR 3) FROM BlobStorage",
            "SELECT DATE_ADD('minute', 1, CAST('2017-01-02T03:04:05.006Z' AS TIMESTAMP)) \
             FROM BlobStorage",
            "SELECT DATE_DIFF(hour, a, b) FROM BlobStorage",
            "SELECT EXTRACT(YEAR FROM '2010-01-01T') FROM BlobStorage",
            "SELECT TO_STRING(TO_TIMESTAMP('1969T'), 'MMMM d, y'), UTCNOW() FROM BlobStorage",
            "SELECT weight,warehouses[0].longitude,id,tags[1] FROM BlobStorage[*]",
            "SELECT a FROM BlobStorage WHERE a NOT BETWEEN 1 AND 2 OR a IN (1, 2) OR a IS NULL",
            "SELECT a FROM BlobStorage WHERE a LIKE 'x!%%' ESCAPE '!' AND a NOT LIKE '_'",
            "SELECT CASE WHEN a = 1 THEN 'x' ELSE 'y' END, CASE a WHEN 1 THEN 2 END \
             FROM BlobStorage",
            "SELECT NULLIF(a, ''), COALESCE(a, b, -1) FROM BlobStorage LIMIT 5",
        ] {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn what_the_dialect_does_not_have_is_refused() {
        let many = format!("SELECT {} FROM BlobStorage", vec!["_1"; 50].join(","));
        let deep = format!("SELECT {}1 FROM BlobStorage", "(".repeat(5000));
        let long = format!("SELECT 1{} FROM BlobStorage", "+1".repeat(5000));
        for text in [
            "",
            "SELECT",
            "SELECT * FROM other",
            "SELECT * FROM BlobStorage GROUP BY a",
            "SELECT a FROM BlobStorage ORDER BY a",
            "SELECT MIN(a), MAX(a) FROM BlobStorage",
            "SELECT a, MIN(a) FROM BlobStorage",
            "SELECT *, a FROM BlobStorage",
            "SELECT a FROM BlobStorage WHERE",
            "SELECT a FROM BlobStorage LIMIT x",
            "SELECT a FROM BlobStorage LIMIT -1",
            "SELECT CAST(a AS money) FROM BlobStorage",
            "SELECT unknown(a) FROM BlobStorage",
            "SELECT LOWER(a, b) FROM BlobStorage",
            "SELECT sys.split(1) FROM BlobStorage",
            "SELECT sys.split(10485760) FROM BlobStorage WHERE _1 = 1",
            "SELECT a NOT 1 FROM BlobStorage",
            "DELETE FROM BlobStorage",
            "SELECT * FROM BlobStorage; SELECT * FROM BlobStorage",
            &many,
            &deep,
            &long,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
