//! The `SignedIdentifiers` document: the stored access policies of a container, queue, table or
//! share.

use holdfast_domain::access::StoredPolicy;
use holdfast_domain::time::Timestamp;

use crate::service::Service;
use crate::xml::Writer;
use crate::xml::document::{self, DocumentRefusal, Element, Fields, invalid, value};

const ROOT: &str = "SignedIdentifiers";
const POLICIES_MAX: usize = 5;
const ID_CHARACTERS_MAX: usize = 64;

/// An empty body is a document without policies.
pub fn parse(service: Service, bytes: &[u8]) -> Result<Vec<StoredPolicy>, DocumentRefusal> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let root = document::parse(bytes, ROOT)?;
    if root.children.len() > POLICIES_MAX {
        return Err(invalid("there are more than 5 policies"));
    }
    let mut policies: Vec<StoredPolicy> = Vec::with_capacity(root.children.len());
    for element in &root.children {
        let policy = parse_policy(service, element)?;
        if policies.iter().any(|earlier| earlier.id == policy.id) {
            return Err(invalid("two policies have the same id"));
        }
        policies.push(policy);
    }
    Ok(policies)
}

fn parse_policy(service: Service, element: &Element) -> Result<StoredPolicy, DocumentRefusal> {
    if element.name != "SignedIdentifier" {
        return Err(DocumentRefusal::UnsupportedNode { name: element.name.clone() });
    }
    let fields = element.fields(&["Id", "AccessPolicy"])?;
    let id = fields.required_text("Id")?;
    if id.chars().count() > ID_CHARACTERS_MAX {
        return Err(value("Id", id));
    }
    let mut policy =
        StoredPolicy { id: id.to_owned(), start: None, expiry: None, permissions: None };
    if let Some(access) = fields.get("AccessPolicy") {
        let fields = access.fields(&["Start", "Expiry", "Permission"])?;
        policy.start = parse_time(fields, "Start")?;
        policy.expiry = parse_time(fields, "Expiry")?;
        policy.permissions = parse_permissions(service, fields)?;
    }
    Ok(policy)
}

fn parse_time(
    fields: Fields<'_>,
    name: &'static str,
) -> Result<Option<Timestamp>, DocumentRefusal> {
    let Some(text) = fields.text(name) else { return Ok(None) };
    match Timestamp::parse_iso8601(text) {
        Some(time) => Ok(Some(time)),
        None => Err(value(name, text)),
    }
}

fn parse_permissions(
    service: Service,
    fields: Fields<'_>,
) -> Result<Option<String>, DocumentRefusal> {
    const NAME: &str = "Permission";
    let letters = match service {
        Service::Blob => "racwdxyltfmeopi",
        Service::Queue => "raup",
        Service::Table => "raud",
        Service::File => "rcwdl",
    };
    let Some(text) = fields.text(NAME) else { return Ok(None) };
    let mut seen = String::new();
    for letter in text.chars() {
        if !letters.contains(letter) || seen.contains(letter) {
            return Err(value(NAME, text));
        }
        seen.push(letter);
    }
    Ok(Some(seen))
}

pub fn write(policies: &[StoredPolicy]) -> String {
    let time = |time: Option<Timestamp>| time.map(|time| time.iso8601().to_string());
    let mut xml = Writer::document();
    xml.open(ROOT);
    for policy in policies {
        xml.open("SignedIdentifier");
        xml.element("Id", &policy.id);
        // The service omits an element that would be empty.
        if (policy.start, policy.expiry, &policy.permissions) != (None, None, &None) {
            xml.open("AccessPolicy");
            xml.optional("Start", time(policy.start).as_deref());
            xml.optional("Expiry", time(policy.expiry).as_deref());
            xml.optional("Permission", policy.permissions.as_deref());
            xml.close("AccessPolicy");
        }
        xml.close("SignedIdentifier");
    }
    xml.close(ROOT);
    xml.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(id: &str, access: &str) -> String {
        format!(
            "<SignedIdentifier><Id>{id}</Id><AccessPolicy>{access}</AccessPolicy></SignedIdentifier>"
        )
    }

    fn parsed(service: Service, policies: &str) -> Result<Vec<StoredPolicy>, DocumentRefusal> {
        parse(service, format!("<{ROOT}>{policies}</{ROOT}>").as_bytes())
    }

    #[test]
    fn policies_are_read_and_written_back() {
        let access = "<Start>2024-01-31T12:34Z</Start><Expiry>2024-02-01</Expiry>\
                      <Permission>rwd</Permission>";
        let policies = parsed(Service::Blob, &policy("a&amp;b", access)).expect("a policy");
        assert_eq!(policies[0].id, "a&b");
        assert_eq!(policies[0].permissions.as_deref(), Some("rwd"));
        let written = write(&policies);
        assert!(written.contains("<Start>2024-01-31T12:34:00.0000000Z</Start>"), "{written}");
        assert!(written.contains("<Expiry>2024-02-01T00:00:00.0000000Z</Expiry>"), "{written}");
        assert_eq!(parse(Service::Blob, written.as_bytes()), Ok(policies));
    }

    #[test]
    fn fields_may_be_left_out_or_empty() {
        let bare =
            StoredPolicy { id: "id".to_owned(), start: None, expiry: None, permissions: None };
        for xml in [
            policy("id", ""),
            policy("id", "<Start/><Expiry></Expiry><Permission/>"),
            "<SignedIdentifier><Id>id</Id></SignedIdentifier>".to_owned(),
        ] {
            assert_eq!(parsed(Service::Queue, &xml), Ok(vec![bare.clone()]), "{xml}");
        }
        let written = write(&[bare]);
        assert!(written.contains("<SignedIdentifier><Id>id</Id></SignedIdentifier>"), "{written}");
        assert_eq!(parsed(Service::Queue, ""), Ok(Vec::new()));
        assert_eq!(parse(Service::Queue, b""), Ok(Vec::new()));
    }

    #[test]
    fn ids_and_their_number_are_limited() {
        let several = |count: usize| {
            let policies: String = (0..count).map(|at| policy(&at.to_string(), "")).collect();
            parsed(Service::Table, &policies)
        };
        assert_eq!(several(5).map(|policies| policies.len()), Ok(5));
        assert_eq!(several(6), Err(invalid("there are more than 5 policies")));
        let twice = parsed(Service::Table, &policy("a", "").repeat(2));
        assert_eq!(twice, Err(invalid("two policies have the same id")));
        assert!(parsed(Service::Table, &policy(&"é".repeat(64), "")).is_ok());
        assert!(parsed(Service::Table, &policy(&"e".repeat(65), "")).is_err());
        assert!(parsed(Service::Table, &policy("", "")).is_err());
        assert!(parsed(Service::Table, "<SignedIdentifier/>").is_err());
        assert!(parsed(Service::Table, "<Other/>").is_err());
    }

    #[test]
    fn times_and_letters_must_be_valid() {
        let refused = |service, access: &str| {
            matches!(
                parsed(service, &policy("a", access)),
                Err(DocumentRefusal::InvalidNodeValue { .. })
            )
        };
        assert!(refused(Service::Blob, "<Start>yesterday</Start>"));
        assert!(refused(Service::Blob, "<Expiry>2024-13-01</Expiry>"));
        let letters = |service, letters: &str| {
            refused(service, &format!("<Permission>{letters}</Permission>"))
        };
        assert!(letters(Service::Blob, "rr"));
        assert!(letters(Service::Blob, "r?"));
        assert!(letters(Service::Blob, "u"));
        assert!(letters(Service::Queue, "w"));
        assert!(letters(Service::Table, "w"));
        assert!(letters(Service::File, "a"));
        assert!(!letters(Service::Blob, "racwdxltmeop"));
        assert!(!letters(Service::Queue, "raup"));
        assert!(!letters(Service::Table, "raud"));
        assert!(!letters(Service::File, "rcwdl"));
    }
}
