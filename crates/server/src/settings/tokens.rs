//! Which bearer tokens are accepted, the source of their keys, and the role assignments.

use std::path::PathBuf;

use holdfast_rest::auth::{Assignment, AssignmentScope, Role};
use holdfast_rest::service::Service;
use holdfast_rest::source::{Scheme, SourceUrl};

use super::Reader;
use crate::command_line::SettingsError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// Tokens are verified.
    Issuer { issuer: String, audiences: Vec<String>, keys: KeySource, assignments: Vec<Assignment> },
    /// Tokens are accepted unverified; without assignments they allow everything.
    Development { assignments: Vec<Assignment> },
}

/// The source of the issuer's public keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    File(PathBuf),
    Url(String),
}

const ISSUER: &str = "oauth-issuer";
const AUDIENCE: &str = "oauth-audience";
const KEYS: &str = "oauth-keys";
const KEYS_URL: &str = "oauth-keys-url";
const DEVELOPMENT: &str = "oauth-development";
const ASSIGNMENT: &str = "role-assignment";

impl Reader {
    pub(super) fn bearer(&self) -> Result<Option<Bearer>, SettingsError> {
        let assignments = self.assignments()?;
        let names = [ISSUER, AUDIENCE, KEYS, KEYS_URL];
        let given = names.into_iter().filter(|name| self.given.contains_key(name));
        let given: Vec<&str> = given.collect();
        match (self.switch(DEVELOPMENT)?, given.first()) {
            (true, Some(name)) => Err(SettingsError::rule(format!(
                "--{DEVELOPMENT} checks no signature, but {} asks for checks: give one of the two",
                self.origin(name)
            ))),
            (true, None) => Ok(Some(Bearer::Development { assignments })),
            (false, None) if assignments.is_empty() => Ok(None),
            (false, None) => Err(self.needs(ASSIGNMENT, &format!("--{ISSUER}"))),
            (false, Some(first)) => self.issuer(first, &given, assignments).map(Some),
        }
    }

    fn issuer(
        &self,
        first: &str,
        given: &[&str],
        assignments: Vec<Assignment>,
    ) -> Result<Bearer, SettingsError> {
        let keys = match (given.contains(&KEYS), given.contains(&KEYS_URL)) {
            (true, false) => Some(KeySource::File(PathBuf::from(self.text(KEYS)))),
            (false, true) => Some(KeySource::Url(self.keys_url()?)),
            (true, true) => {
                return Err(SettingsError::rule(format!(
                    "{} and {} both tell where the keys are: give one of the two",
                    self.origin(KEYS),
                    self.origin(KEYS_URL)
                )));
            }
            (false, false) => None,
        };
        let audiences = self.text(AUDIENCE);
        let audiences = audiences.split(';').map(str::trim).filter(|audience| !audience.is_empty());
        let audiences: Vec<String> = audiences.map(str::to_owned).collect();
        match (given.contains(&ISSUER), audiences.is_empty(), keys) {
            (true, false, Some(keys)) => {
                Ok(Bearer::Issuer { issuer: self.text(ISSUER), audiences, keys, assignments })
            }
            (has_issuer, no_audience, keys) => {
                let missing = [
                    (!has_issuer, format!("--{ISSUER}")),
                    (no_audience, format!("--{AUDIENCE}")),
                    (keys.is_none(), format!("--{KEYS} (or --{KEYS_URL})")),
                ];
                let missing = missing.into_iter().filter(|(missing, _)| *missing);
                let missing: Vec<String> = missing.map(|(_, name)| name).collect();
                Err(self.needs(first, &missing.join(" and ")))
            }
        }
    }

    /// With keys that were changed on the way others could make tokens.
    fn keys_url(&self) -> Result<String, SettingsError> {
        let text = self.text(KEYS_URL);
        let refused = || self.refuse(KEYS_URL, "an https URL, or http on a loopback address");
        let url = SourceUrl::parse(&text).map_err(|_| refused())?;
        match url.scheme {
            Scheme::Https => Ok(text),
            Scheme::Http if url.host.is_loopback() => Ok(text),
            Scheme::Http => Err(refused()),
        }
    }

    fn assignments(&self) -> Result<Vec<Assignment>, SettingsError> {
        let given = self.given.get(ASSIGNMENT).map_or(&[][..], |given| given.texts.as_slice());
        let read = |text: &String| {
            assignment(text).map_err(|allowed| SettingsError::Value {
                origin: self.origin(ASSIGNMENT),
                value: text.replace('\n', ","),
                allowed,
            })
        };
        given.iter().map(read).collect()
    }
}

/// `name=value` pairs, separated by commas, or by line ends if values contain commas. The error
/// says what is allowed.
fn assignment(text: &str) -> Result<Assignment, String> {
    let separator = if text.contains('\n') { '\n' } else { ',' };
    let (mut role, mut account, mut container, mut who) = (None, None, None, Vec::new());
    for pair in text.split(separator).map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("pairs such as role=NAME")?;
        let (name, value) = (name.trim(), value.trim().to_owned());
        let mut within = |service: Service| match container.replace((service, value.clone())) {
            None => Ok(()),
            Some(_) => Err("one of container, queue, table and share"),
        };
        match name {
            "role" => role = Some(Role::built_in(&value).ok_or_else(known_roles)?),
            "account" => account = Some(value),
            "container" => within(Service::Blob)?,
            "queue" => within(Service::Queue)?,
            "table" => within(Service::Table)?,
            "share" => within(Service::File)?,
            "issuer" => who.push(("iss".to_owned(), value)),
            "object-id" => who.push(("oid".to_owned(), value)),
            "group" => who.push(("groups".to_owned(), value)),
            name => match name.strip_prefix("claim.") {
                Some(claim) if !claim.is_empty() => who.push((claim.to_owned(), value)),
                Some(_) | None => {
                    return Err(
                        "the names role, account, container, queue, table, share, issuer, \
                                object-id, group and claim.NAME"
                            .to_owned(),
                    );
                }
            },
        }
    }
    let role = role.ok_or("a role (role=NAME)")?;
    let account = account.ok_or("an account (account=NAME, or account=* for all)")?;
    if who.is_empty() {
        return Err("somebody who has the role: issuer, object-id, group or claim.NAME".to_owned());
    }
    let account = Some(account).filter(|name| name != "*");
    Ok(Assignment { who, role, scope: AssignmentScope { account, container } })
}

fn known_roles() -> String {
    let names: Vec<&str> = Role::all().iter().map(|role| role.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_says_who_has_which_role_where() {
        let read = assignment("role=storage blob data reader, account=mine, object-id=o, group=g");
        let read = read.expect("an assignment");
        assert_eq!(read.role.name, "Storage Blob Data Reader");
        assert_eq!(read.scope.account.as_deref(), Some("mine"));
        assert_eq!(read.scope.container, None);
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(read.who, [pair("oid", "o"), pair("groups", "g")]);

        let lines = "role=Storage Table Data Reader\naccount=*\ntable=t\nclaim.ou=a, b\nissuer=i";
        let read = assignment(lines).expect("an assignment");
        assert_eq!(read.scope.account, None);
        assert_eq!(read.scope.container, Some((Service::Table, "t".to_owned())));
        assert_eq!(read.who, [pair("ou", "a, b"), pair("iss", "i")]);
    }

    #[test]
    fn an_assignment_that_means_nothing_is_refused() {
        for (text, part) in [
            ("", "role=NAME"),
            ("account=a,object-id=o", "role=NAME"),
            ("role=Reader,account=a,object-id=o", "Storage Blob Data Reader"),
            ("role=Storage Blob Delegator,object-id=o", "account=*"),
            ("role=Storage Blob Delegator,account=a", "object-id"),
            ("role=Storage Blob Delegator,account=a,oid=o", "claim.NAME"),
            ("role=Storage Blob Delegator,account=a,claim.=o", "claim.NAME"),
            ("role=Storage Blob Delegator,account=a,group=g,queue=q,table=t", "one of container"),
            ("everything", "pairs such as"),
        ] {
            let message = assignment(text).map(|_| ()).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
