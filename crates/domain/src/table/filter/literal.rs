//! Constants of a filter, as OData writes them.

use uuid::Uuid;

use crate::table::Value;
use crate::time::Timestamp;

/// A constant that looks like a name. Booleans are accepted in any case, as clients of other
/// languages write them (github.com/Azure/Azurite/pull/1959).
pub(super) fn named(word: &str) -> Option<Value> {
    match word {
        _ if word.eq_ignore_ascii_case("true") => Some(Value::Boolean(true)),
        _ if word.eq_ignore_ascii_case("false") => Some(Value::Boolean(false)),
        "NaN" => Some(Value::Double(f64::NAN)),
        "INF" => Some(Value::Double(f64::INFINITY)),
        _ => None,
    }
}

/// A constant with its type before the text. Type names are accepted in any case, as OData's
/// libraries do; operators and properties are case-sensitive.
pub(super) fn prefixed(prefix: &str, text: &str) -> Result<Value, &'static str> {
    let is = |name: &str| prefix.eq_ignore_ascii_case(name);
    if is("datetime") {
        datetime(text).map(Value::DateTime).ok_or("this is not a time")
    } else if is("guid") {
        guid(text).map(Value::Guid).ok_or("this is not a GUID")
    } else if is("X") || is("binary") {
        let bytes = hexadecimal(text).ok_or("these are not bytes in hexadecimal digits")?;
        Ok(Value::Binary(bytes.into()))
    } else {
        Err("there is no such type of constant")
    }
}

/// `5` is an Int32: the service refuses a larger number as not an Int32, unless it ends with `L`
/// (github.com/microsoft/AzureStorageExplorer/issues/1382).
pub(super) fn number(text: &str) -> Result<Value, &'static str> {
    if text == "-INF" {
        return Ok(Value::Double(f64::NEG_INFINITY));
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = |text: &str| digits(text.strip_prefix('-').unwrap_or(text));
    if let Some(long) = text.strip_suffix(['L', 'l'])
        && unsigned(long)
    {
        return long.parse().map(Value::Int64).map_err(|_| "this is not an Int64");
    }
    if unsigned(text) {
        return text.parse().map(Value::Int32).map_err(|_| "this is not an Int32");
    }
    let double = text.strip_suffix(['D', 'd']).unwrap_or(text);
    let (mantissa, exponent) = match double.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (double, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    if !unsigned(whole) || !fraction.is_none_or(digits) || !exponent.is_none_or(digits) {
        return Err("this is not a number");
    }
    match double.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Value::Double(number)),
        _ => Err("this is not a Double"),
    }
}

/// A time without zone is in UTC.
fn datetime(text: &str) -> Option<Timestamp> {
    Timestamp::parse_iso8601(text).or_else(|| Timestamp::parse_iso8601(&format!("{text}Z")))
}

/// Only the form with hyphens.
fn guid(text: &str) -> Option<Uuid> {
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8)).collect()
}
