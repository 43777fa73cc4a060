//! The configuration file: TOML whose keys are the names of the flags.

use std::path::Path;

use toml::{Table, Value};

use crate::command_line::relative_to_file;
use crate::command_line::{Given, Kind, Origin, SETTINGS, Setting, SettingsError};

/// The settings of a file, by name. An unknown key is refused, so that a misspelled one is never
/// silently ignored.
pub fn read(path: &Path) -> Result<Vec<(&'static str, Given)>, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        SettingsError::rule(format!("cannot read configuration file {}: {error}", path.display()))
    })?;
    let table: Table = text.parse().map_err(|error| {
        SettingsError::rule(format!("configuration file {} is not TOML: {error}", path.display()))
    })?;
    table
        .into_iter()
        .map(|(key, value)| {
            let setting = setting_of_key(&key, path)?;
            let texts = texts_of(setting, value, path)?;
            Ok((setting.name, Given { texts, origin: origin(setting, path) }))
        })
        .collect()
}

/// The settings allowed in a file; a file cannot name another one.
fn in_files() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| setting.name != "config")
}

fn setting_of_key(key: &str, path: &Path) -> Result<&'static Setting, SettingsError> {
    in_files().find(|setting| setting.key() == key).ok_or_else(|| {
        let known: Vec<String> = in_files().map(Setting::key).collect();
        SettingsError::rule(format!(
            "unknown key {key:?} in {}; known keys: {}",
            path.display(),
            known.join(", ")
        ))
    })
}

fn origin(setting: &Setting, path: &Path) -> Origin {
    Origin::Key { key: setting.key(), file: path.to_owned() }
}

fn texts_of(setting: &Setting, value: Value, path: &Path) -> Result<Vec<String>, SettingsError> {
    if setting.kind == Kind::List {
        let Value::Array(items) = value else {
            return Err(wrong_type(setting, &value, path, "a list of strings"));
        };
        let text = |item: &Value| match item.as_table() {
            Some(table) if setting.name == "role-assignment" => lines_of(setting, table, path),
            Some(_) | None => text_of(setting, item, path),
        };
        return items.iter().map(text).collect();
    }
    let text = text_of(setting, &value, path)?;
    Ok(vec![if setting.kind == Kind::Path { relative_to_file(&text, path) } else { text }])
}

/// A table of texts, as lines of `key=value`.
fn lines_of(setting: &Setting, table: &Table, path: &Path) -> Result<String, SettingsError> {
    let mut lines = String::new();
    for (key, value) in table {
        let text = text_of(setting, value, path)?;
        if text.contains('\n') {
            return Err(wrong_type(setting, value, path, "texts of one line"));
        }
        lines.push_str(&format!("{key}={text}\n"));
    }
    Ok(lines)
}

fn text_of(setting: &Setting, value: &Value, path: &Path) -> Result<String, SettingsError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Boolean(switch) => Ok(switch.to_string()),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            Err(wrong_type(setting, value, path, "a string, a whole number or a boolean"))
        }
    }
}

fn wrong_type(setting: &Setting, value: &Value, path: &Path, allowed: &str) -> SettingsError {
    SettingsError::Value {
        origin: origin(setting, path),
        value: format!("a value of type {}", value.type_str()),
        allowed: allowed.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<(&'static str, Given)>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("holdfast.toml");
        std::fs::write(&path, text).expect("written");
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_that_is_no_setting_is_refused_by_name() {
        let message = read_text("blob-prt = 10").map(|_| ()).expect_err("refused");
        assert!(message.contains("unknown key \"blob-prt\""), "{message}");
        assert!(message.contains("blob-port"), "{message}");
        read_text("config = 'other.toml'").map(|_| ()).expect_err("a file names no other file");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_by_key() {
        for text in ["host = 1.5", "host = ['a']", "accounts = 'a:b'", "[data]\nx = 1"] {
            let message = read_text(text).map(|_| ()).expect_err(text);
            assert!(message.contains("is not allowed; allowed:"), "{message}");
            assert!(message.contains("holdfast.toml"), "{message}");
        }
    }

    #[test]
    fn a_file_that_is_not_toml_or_not_there_is_named() {
        let message = read_text("= 5").map(|_| ()).expect_err("refused");
        assert!(message.contains("holdfast.toml is not TOML"), "{message}");
        let missing = read(Path::new("/nonexistent/x.toml")).map(|_| ()).expect_err("refused");
        assert!(missing.to_string().contains("/nonexistent/x.toml"), "{missing}");
    }

    #[test]
    fn role_assignments_are_tables_or_texts() {
        let text = "[[role-assignments]]\nrole = 'r'\naccount = 'a'\n'claim.ou' = 'x, y'";
        let read = read_text(text).expect("read");
        assert_eq!(read[0].1.texts, ["account=a\nclaim.ou=x, y\nrole=r\n"]);
        let read = read_text("role-assignments = ['role=r,account=a']").expect("read");
        assert_eq!(read[0].1.texts, ["role=r,account=a"]);
        read_text("accounts = [{ name = 'a' }]").map(|_| ()).expect_err("no table");
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("holdfast.toml");
        std::fs::write(&path, "data = 'd'\nhost = 'h'\ntls-cert = '/etc/c.pem'").expect("written");
        let values = read(&path).map_err(|error| error.to_string()).expect("read");
        let text = |name: &str| {
            let found = values.iter().find(|(found, _)| *found == name);
            found.map(|(_, given)| given.texts[0].clone()).expect("there")
        };
        assert_eq!(Path::new(&text("data")), folder.path().join("d"));
        assert_eq!(text("host"), "h");
        assert_eq!(text("tls-cert"), "/etc/c.pem");
    }
}
