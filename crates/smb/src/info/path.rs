//! Converts names of CREATE and of renames to paths of the domain.

use holdfast_domain::names::{FilePath, NameRefusal, TrailingDots};

use crate::status::Status;

/// The stream of the content, the only one.
const DATA_STREAM: &str = "::$DATA";

/// `name` is relative to the share; parts are separated by `\`, or by `/` as from POSIX clients, and
/// an empty name is the root.
pub fn parse(name: &str) -> Result<FilePath, Status> {
    let parsed = parse_name(name);
    if let Err(status) = parsed {
        tracing::debug!(name, ?status, "a name is refused");
    }
    parsed
}

fn parse_name(name: &str) -> Result<FilePath, Status> {
    if name.starts_with(['\\', '/']) {
        return Err(Status::INVALID_PARAMETER);
    }
    let name = strip_data_stream(name)?;
    let path = without_steps_up(name)?;
    FilePath::directory(&path, TrailingDots::Kept).map_err(status)
}

/// With slashes, and with `..` resolved; nothing is above the root.
fn without_steps_up(name: &str) -> Result<String, Status> {
    let mut parts = Vec::new();
    for part in name.split(['\\', '/']) {
        if part == ".." {
            parts.pop().ok_or(Status::OBJECT_PATH_SYNTAX_BAD)?;
        } else {
            parts.push(part);
        }
    }
    Ok(parts.join("/"))
}

/// Other streams are refused, as on a file system without streams.
fn strip_data_stream(name: &str) -> Result<&str, Status> {
    let suffix_at = name.len().checked_sub(DATA_STREAM.len());
    let split = suffix_at.and_then(|at| name.split_at_checked(at));
    let name = match split {
        Some((file, stream)) if !file.is_empty() && stream.eq_ignore_ascii_case(DATA_STREAM) => {
            file
        }
        _ => name,
    };
    if name.contains(':') { Err(Status::OBJECT_NAME_INVALID) } else { Ok(name) }
}

fn status(refusal: NameRefusal) -> Status {
    match refusal {
        NameRefusal::Length
        | NameRefusal::Characters
        | NameRefusal::Reserved
        | NameRefusal::Address => Status::OBJECT_NAME_INVALID,
    }
}

/// The path as clients write it.
pub fn to_wire(path: &FilePath) -> String {
    path.to_string().replace('/', "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_or_the_right_refusal() {
        let long = "n".repeat(256);
        for (name, expected) in [
            ("", Ok("")),
            ("a", Ok("a")),
            ("a\\b c.txt", Ok("a\\b c.txt")),
            ("a\\", Ok("a")),
            ("file::$DATA", Ok("file")),
            ("file::$data", Ok("file")),
            ("dots..", Ok("dots..")),
            ("\\a", Err(Status::INVALID_PARAMETER)),
            ("a\\\\b", Err(Status::OBJECT_NAME_INVALID)),
            ("a/b", Ok("a\\b")),
            ("/a", Err(Status::INVALID_PARAMETER)),
            ("a\\..\\b", Ok("b")),
            ("a\\b\\..\\..\\c", Ok("c")),
            ("a\\..", Ok("")),
            ("a\\..\\..\\b", Err(Status::OBJECT_PATH_SYNTAX_BAD)),
            ("..", Err(Status::OBJECT_PATH_SYNTAX_BAD)),
            ("a\\.", Err(Status::OBJECT_NAME_INVALID)),
            ("a*", Err(Status::OBJECT_NAME_INVALID)),
            ("file:stream", Err(Status::OBJECT_NAME_INVALID)),
            ("file:stream:$DATA", Err(Status::OBJECT_NAME_INVALID)),
            ("::$DATA", Err(Status::OBJECT_NAME_INVALID)),
            (&long, Err(Status::OBJECT_NAME_INVALID)),
        ] {
            let outcome = parse(name).map(|path| to_wire(&path));
            assert_eq!(outcome.as_deref(), expected.as_ref().copied(), "{name}");
        }
    }
}
