//! Shared Key signatures of the requests that this program sends.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::account::{Account, Service};

/// The signed parts of a request.
pub struct Signed<'request> {
    pub service: Service,
    pub method: &'request str,
    pub content_length: usize,
    pub content_type: &'request str,
    /// The value of `x-ms-date`.
    pub date: &'request str,
    /// Sorted by name in lower case; of these only the `x-ms-` headers are signed.
    pub headers: &'request [(&'request str, &'request str)],
    /// As sent, without the query.
    pub path: &'request str,
    /// Sorted by name; decoded.
    pub query: &'request [(&'request str, &'request str)],
}

/// Buffers that signing reuses.
#[derive(Default)]
pub struct Signer {
    string_to_sign: String,
    authorization: String,
}

impl Signer {
    /// The value of the `Authorization` header.
    pub fn sign(&mut self, account: &Account, key: &Hmac<Sha256>, request: &Signed<'_>) -> &str {
        self.string_to_sign.clear();
        match request.service {
            Service::Blob | Service::Queue | Service::File => self.write_full(account, request),
            Service::Table => self.write_table(account, request),
        }
        let mut mac = key.clone();
        mac.update(self.string_to_sign.as_bytes());
        self.authorization.clear();
        self.authorization.push_str("SharedKey ");
        self.authorization.push_str(&account.name);
        self.authorization.push(':');
        STANDARD.encode_string(mac.finalize().into_bytes(), &mut self.authorization);
        &self.authorization
    }

    fn write_full(&mut self, account: &Account, request: &Signed<'_>) {
        let text = &mut self.string_to_sign;
        text.push_str(request.method);
        text.push_str("\n\n\n");
        if request.content_length > 0 {
            text.push_str(&request.content_length.to_string());
        }
        text.push_str("\n\n");
        text.push_str(request.content_type);
        let condition = |wanted: &str| {
            let found = request.headers.iter().find(|(name, _)| *name == wanted);
            found.map_or("", |(_, value)| *value)
        };
        let (is, is_not) = (condition("if-match"), condition("if-none-match"));
        text.extend(["\n\n\n", is, "\n", is_not, "\n\n\n"]);
        let signed = request.headers.iter().filter(|(name, _)| name.starts_with("x-ms-"));
        for (name, value) in signed {
            text.extend(name.chars().map(|letter| letter.to_ascii_lowercase()));
            text.extend([":", *value, "\n"]);
        }
        text.extend(["/", &account.name, request.path]);
        for (name, value) in request.query {
            text.extend(["\n", *name, ":", *value]);
        }
    }

    fn write_table(&mut self, account: &Account, request: &Signed<'_>) {
        let text = &mut self.string_to_sign;
        text.extend([request.method, "\n\n", request.content_type, "\n", request.date, "\n"]);
        text.extend(["/", &account.name, request.path]);
        if let Some((_, comp)) = request.query.iter().find(|(name, _)| *name == "comp") {
            text.extend(["?comp=", comp]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Credential;

    fn string_to_sign(request: &Signed<'_>) -> String {
        let account = Account::parse("UseDevelopmentStorage=true").expect("it is valid");
        let Credential::Key(key) = &account.credential else { panic!("it has a key") };
        let mut signer = Signer::default();
        signer.sign(&account, key, request);
        signer.string_to_sign
    }

    #[test]
    fn blob_form_has_the_twelve_lines_then_headers_and_resource() {
        let signed = string_to_sign(&Signed {
            service: Service::Blob,
            method: "PUT",
            content_length: 11,
            content_type: "text/plain",
            date: "Sun, 15 Nov 2026 22:00:00 GMT",
            headers: &[
                ("accept", "*/*"),
                ("x-ms-blob-type", "BlockBlob"),
                ("x-ms-meta-Owner", "Me"),
                ("x-ms-version", "2024-11-04"),
            ],
            path: "/devstoreaccount1/container/blob",
            query: &[("comp", "tier"), ("timeout", "30")],
        });
        assert_eq!(
            signed,
            "PUT\n\n\n11\n\ntext/plain\n\n\n\n\n\n\nx-ms-blob-type:BlockBlob\n\
             x-ms-meta-owner:Me\nx-ms-version:2024-11-04\n/devstoreaccount1/devstoreaccount1/container/blob\n\
             comp:tier\ntimeout:30"
        );
    }

    #[test]
    fn conditions_have_lines_of_their_own_in_the_blob_form() {
        let signed = string_to_sign(&Signed {
            service: Service::Blob,
            method: "PUT",
            content_length: 0,
            content_type: "",
            date: "",
            headers: &[("if-match", "\"0x1\""), ("if-none-match", "*")],
            path: "/devstoreaccount1/c/b",
            query: &[],
        });
        let expected = "PUT\n\n\n\n\n\n\n\n\"0x1\"\n*\n\n\n/devstoreaccount1/devstoreaccount1/c/b";
        assert_eq!(signed, expected);
    }

    #[test]
    fn table_form_signs_the_date_and_only_comp_of_the_query() {
        let signed = string_to_sign(&Signed {
            service: Service::Table,
            method: "GET",
            content_length: 0,
            content_type: "",
            date: "Sun, 15 Nov 2026 22:00:00 GMT",
            headers: &[("x-ms-version", "2024-11-04")],
            path: "/devstoreaccount1/table()",
            query: &[("$top", "1"), ("comp", "acl")],
        });
        assert_eq!(
            signed,
            "GET\n\n\nSun, 15 Nov 2026 22:00:00 GMT\n\
             /devstoreaccount1/devstoreaccount1/table()?comp=acl"
        );
    }
}
