//! A query of a blob: an expression, the format of the blob and the format of the answer.

use crate::sql::{self, Statement, SyntaxError};

/// The maximum length of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 256 * 1024;
/// Far more than the one or two characters of separators.
const SEPARATOR_BYTES_MAX: usize = 16;
/// More than SELECT may name, for SELECT *.
const ARROW_FIELDS_MAX: usize = 1000;
/// The most digits of a 128-bit decimal.
const DECIMAL_DIGITS_MAX: u8 = 38;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryRequest {
    pub expression: String,
    /// Absent: delimited text with the default settings.
    pub input: Option<InputFormat>,
    /// Absent: the format of the input, or delimited text for Parquet.
    pub output: Option<OutputFormat>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputFormat {
    Delimited(Delimited),
    Json(JsonText),
    Parquet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    Delimited(Delimited),
    Json(JsonText),
    Arrow(Vec<ArrowField>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimited {
    pub column_separator: String,
    /// Empty: none.
    pub field_quote: String,
    pub record_separator: String,
    /// Empty: none.
    pub escape: String,
    pub has_headers: bool,
}

impl Default for Delimited {
    fn default() -> Self {
        Self {
            column_separator: ",".to_owned(),
            field_quote: "\"".to_owned(),
            record_separator: "\n".to_owned(),
            escape: String::new(),
            has_headers: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonText {
    pub record_separator: String,
}

impl Default for JsonText {
    fn default() -> Self {
        Self { record_separator: "\n".to_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowField {
    pub name: String,
    pub kind: ArrowKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    Integer,
    Boolean,
    /// Milliseconds.
    Timestamp,
    Text,
    Double,
    Decimal {
        precision: u8,
        scale: i8,
    },
}

/// Why a request is answered with an error instead of a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the expression is not one of the query language: {0}")]
    Syntax(#[from] SyntaxError),
    #[error("the expression does not fit the format of the input: {reason}")]
    Unfit { reason: &'static str },
    #[error("the expression is longer than 256 KiB")]
    TooLong,
    #[error("the setting {setting} cannot be {value:?}")]
    Setting { setting: &'static str, value: String },
}

/// A valid request, whatever the blob contains.
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) statement: Statement,
    pub(crate) input: InputFormat,
    pub(crate) output: OutputFormat,
    pub(crate) owner: Option<String>,
}

impl Query {
    /// Queries of one owner share a limited number of threads.
    pub fn of_owner(self, owner: &str) -> Self {
        Self { owner: Some(owner.to_owned()), ..self }
    }

    pub fn new(request: QueryRequest) -> Result<Self, Refusal> {
        if request.expression.len() > EXPRESSION_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        let statement = sql::parse(&request.expression)?;
        let input = request.input.unwrap_or_else(|| InputFormat::Delimited(Delimited::default()));
        let output = request.output.unwrap_or_else(|| match &input {
            InputFormat::Delimited(settings) => OutputFormat::Delimited(settings.clone()),
            InputFormat::Json(settings) => OutputFormat::Json(settings.clone()),
            InputFormat::Parquet => OutputFormat::Delimited(Delimited::default()),
        });
        match &input {
            InputFormat::Delimited(settings) => settings.check()?,
            InputFormat::Json(settings) => settings.check()?,
            InputFormat::Parquet => {}
        }
        match &output {
            OutputFormat::Delimited(settings) => settings.check()?,
            OutputFormat::Json(settings) => settings.check()?,
            OutputFormat::Arrow(fields) => check_arrow(fields)?,
        }
        fits(&statement, &input)?;
        Ok(Self { statement, input, output, owner: None })
    }
}

/// Checks that the statement fits the input: only JSON has paths, only delimited text can be split.
fn fits(statement: &Statement, input: &InputFormat) -> Result<(), Refusal> {
    let is_json = matches!(input, InputFormat::Json(_));
    if !is_json && !statement.from.is_empty() {
        return Err(Refusal::Unfit { reason: "only JSON has a path behind BlobStorage" });
    }
    let is_split = matches!(statement.projection, sql::Projection::Split(_));
    if is_split && !matches!(input, InputFormat::Delimited(_)) {
        return Err(Refusal::Unfit { reason: "only delimited text can be split" });
    }
    Ok(())
}

impl Delimited {
    fn check(&self) -> Result<(), Refusal> {
        separator("ColumnSeparator", &self.column_separator)?;
        separator("RecordSeparator", &self.record_separator)?;
        character("FieldQuote", &self.field_quote)?;
        character("EscapeChar", &self.escape)?;
        if self.column_separator == self.record_separator {
            return refused("RecordSeparator", &self.record_separator);
        }
        Ok(())
    }
}

impl JsonText {
    fn check(&self) -> Result<(), Refusal> {
        separator("RecordSeparator", &self.record_separator)
    }
}

fn separator(setting: &'static str, value: &str) -> Result<(), Refusal> {
    if value.is_empty() || value.len() > SEPARATOR_BYTES_MAX {
        return refused(setting, value);
    }
    Ok(())
}

/// Empty, or one ASCII character.
fn character(setting: &'static str, value: &str) -> Result<(), Refusal> {
    if value.len() > 1 { refused(setting, value) } else { Ok(()) }
}

fn check_arrow(fields: &[ArrowField]) -> Result<(), Refusal> {
    if fields.is_empty() || fields.len() > ARROW_FIELDS_MAX {
        return refused("Schema", &fields.len().to_string());
    }
    for field in fields {
        if let ArrowKind::Decimal { precision, scale } = field.kind {
            if !(1..=DECIMAL_DIGITS_MAX).contains(&precision) {
                return refused("Precision", &precision.to_string());
            }
            if scale < 0 || scale.unsigned_abs() > precision {
                return refused("Scale", &scale.to_string());
            }
        }
    }
    Ok(())
}

fn refused(setting: &'static str, value: &str) -> Result<(), Refusal> {
    Err(Refusal::Setting { setting, value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(expression: &str) -> QueryRequest {
        QueryRequest { expression: expression.to_owned(), input: None, output: None }
    }

    #[test]
    fn absent_formats_are_the_defaults() {
        let query = Query::new(request("SELECT * FROM BlobStorage")).expect("a query");
        assert_eq!(query.input, InputFormat::Delimited(Delimited::default()));
        assert_eq!(query.output, OutputFormat::Delimited(Delimited::default()));
        let input = Some(InputFormat::Parquet);
        let query = Query::new(QueryRequest { input, ..request("SELECT * FROM BlobStorage") })
            .expect("a query");
        assert_eq!(query.output, OutputFormat::Delimited(Delimited::default()));
    }

    #[test]
    fn settings_that_cannot_be_used_are_refused() {
        let base = Delimited::default();
        for (setting, delimited) in [
            ("RecordSeparator", Delimited { record_separator: ",".to_owned(), ..base.clone() }),
            ("RecordSeparator", Delimited { record_separator: String::new(), ..base.clone() }),
            ("ColumnSeparator", Delimited { column_separator: "x".repeat(17), ..base.clone() }),
            ("FieldQuote", Delimited { field_quote: "''".to_owned(), ..base.clone() }),
            ("EscapeChar", Delimited { escape: "ü".to_owned(), ..base.clone() }),
        ] {
            let output = Some(OutputFormat::Delimited(delimited));
            let asked = QueryRequest { output, ..request("SELECT * FROM BlobStorage") };
            let Err(Refusal::Setting { setting: refused, .. }) = Query::new(asked) else {
                panic!("{setting}")
            };
            assert_eq!(refused, setting);
        }
        for (precision, scale) in [(0, 0), (39, 0), (4, 5), (4, -1)] {
            let kind = ArrowKind::Decimal { precision, scale };
            let output = Some(OutputFormat::Arrow(vec![ArrowField { name: "a".into(), kind }]));
            let asked = QueryRequest { output, ..request("SELECT * FROM BlobStorage") };
            assert!(matches!(Query::new(asked), Err(Refusal::Setting { .. })));
        }
    }

    #[test]
    fn an_expression_fits_its_input() {
        let path = request("SELECT * FROM BlobStorage[*].a");
        assert!(matches!(Query::new(path.clone()), Err(Refusal::Unfit { .. })));
        let json = Some(InputFormat::Json(JsonText::default()));
        assert!(Query::new(QueryRequest { input: json.clone(), ..path }).is_ok());
        let split = request("SELECT sys.split(10485760) FROM BlobStorage");
        assert!(Query::new(split.clone()).is_ok());
        let refused = Query::new(QueryRequest { input: json, ..split });
        assert!(matches!(refused, Err(Refusal::Unfit { .. })));
        let long = request(&" ".repeat(EXPRESSION_BYTES_MAX + 1));
        assert!(matches!(Query::new(long), Err(Refusal::TooLong)));
    }
}
