//! Requests of pages of other origins: the limits of rules, which rule applies to a request, and
//! the headers of its answer.

use holdfast_domain::account::CorsRule;
use hyper::Method;

use crate::headers::AnswerHeaders;
use crate::headers::RequestHeaders;
use crate::xml::document::{DocumentRefusal, Element, invalid, value};

const RULES_MAX: usize = 5;
const RULES_BYTES_MAX: usize = 2048;
const ENTRY_CHARACTERS_MAX: usize = 256;
const ORIGINS_MAX: usize = 64;
const LITERAL_HEADERS_MAX: usize = 64;
const PREFIXED_HEADERS_MAX: usize = 2;
const METHODS: [&str; 8] = ["DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"];

/// 403 `CorsPreflightFailure`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CORS is not enabled or no matching rule was found for this request")]
pub struct PreflightRefusal;

/// Headers to add to an answer.
pub type Added = Vec<(&'static str, String)>;

/// The answer to a preflight.
pub fn preflight(rules: &[CorsRule], request: &RequestHeaders) -> Result<Added, PreflightRefusal> {
    let origin = text(request, "origin").ok_or(PreflightRefusal)?;
    let method = text(request, "access-control-request-method").ok_or(PreflightRefusal)?;
    let asked = text(request, "access-control-request-headers").unwrap_or_default();
    let rule = select(rules, origin, method).ok_or(PreflightRefusal)?;
    let allowed = entries(asked).all(|header| listed(&rule.allowed_headers, header));
    if !allowed {
        return Err(PreflightRefusal);
    }
    let mut added = vec![
        ("access-control-allow-origin", origin.to_owned()),
        ("access-control-allow-methods", method.to_owned()),
        ("access-control-max-age", rule.max_age_seconds.to_string()),
        ("access-control-allow-credentials", "true".to_owned()),
    ];
    if !asked.is_empty() {
        added.push(("access-control-allow-headers", asked.to_owned()));
    }
    Ok(added)
}

/// What is added to the answer of any other request; `response` is the answer so far, whose header
/// names decide what a prefix in the rule exposes.
pub fn actual(
    rules: &[CorsRule],
    method: &Method,
    request: &RequestHeaders,
    response: &AnswerHeaders,
) -> Added {
    // Only answers that caches keep need to say that they depend on the origin.
    let cached = matches!(*method, Method::GET | Method::HEAD);
    if rules.is_empty() {
        return Added::new();
    }
    let origin = text(request, "origin");
    let rule = match origin {
        Some(origin) => select(rules, origin, method.as_str()),
        // Without an origin only a rule for all origins can apply, and only to cacheable answers.
        None if cached => select(rules, "", method.as_str()),
        None => None,
    };
    let mut added = Added::new();
    match rule {
        Some(rule) if for_any_origin(rule) => {
            added.push(("access-control-allow-origin", "*".to_owned()));
        }
        Some(_) => {
            added.push(("access-control-allow-origin", origin.unwrap_or_default().to_owned()));
            added.push(("access-control-allow-credentials", "true".to_owned()));
        }
        None => {}
    }
    if let Some(rule) = rule {
        added.push(("access-control-expose-headers", exposed(rule, response)));
    }
    if cached && !rule.is_some_and(for_any_origin) {
        added.push(("vary", "Origin".to_owned()));
    }
    added
}

/// The first rule whose origins and methods match, even if its headers do not.
fn select<'a>(rules: &'a [CorsRule], origin: &str, method: &str) -> Option<&'a CorsRule> {
    rules.iter().find(|rule| {
        rule.allowed_origins.iter().any(|allowed| origin_matches(allowed, origin))
            && rule.allowed_methods.iter().any(|allowed| allowed == method)
    })
}

fn for_any_origin(rule: &CorsRule) -> bool {
    rule.allowed_origins.iter().any(|origin| origin == "*")
}

/// Matches exactly, by `*`, or by a wildcard for subdomains as in `http://*.example.org`, or
/// `*.example.org` for any scheme.
fn origin_matches(allowed: &str, origin: &str) -> bool {
    if allowed == "*" || allowed == origin {
        return allowed == "*" || !origin.is_empty();
    }
    let (scheme, domain) = match (allowed.strip_prefix('*'), allowed.split_once("://*")) {
        (Some(domain), _) => (None, domain),
        (None, Some((scheme, domain))) => (Some(scheme), domain),
        (None, None) => return false,
    };
    let Some((of_origin, host)) = origin.split_once("://") else { return false };
    let subdomain = host.strip_suffix(domain);
    scheme.is_none_or(|scheme| scheme == of_origin)
        && domain.starts_with('.')
        && subdomain.is_some_and(|subdomain| !subdomain.is_empty())
}

/// Whether a list of header names and prefixes has the header.
fn listed(names: &[String], header: &str) -> bool {
    names.iter().any(|name| match name.strip_suffix('*') {
        Some(prefix) => {
            let start = header.as_bytes().get(..prefix.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
        }
        None => name.eq_ignore_ascii_case(header),
    })
}

fn exposed(rule: &CorsRule, response: &AnswerHeaders) -> String {
    let mut names: Vec<&str> = rule
        .exposed_headers
        .iter()
        .map(String::as_str)
        .filter(|name| !name.ends_with('*'))
        .collect();
    let prefixes: Vec<String> =
        rule.exposed_headers.iter().filter(|name| name.ends_with('*')).cloned().collect();
    for (name, _) in response.iter() {
        let known = names.iter().any(|known| known.eq_ignore_ascii_case(name));
        if !known && listed(&prefixes, name) {
            names.push(name);
        }
    }
    names.join(",")
}

fn text<'a>(headers: &'a RequestHeaders, name: &str) -> Option<&'a str> {
    let sent = headers.text(name)?.trim();
    (!sent.is_empty()).then_some(sent)
}

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// The rules of a `Cors` element, within the limits of the service.
pub(crate) fn parse(cors: &Element) -> Result<Vec<CorsRule>, DocumentRefusal> {
    if cors.children.len() > RULES_MAX {
        return Err(invalid("there are more than 5 CORS rules"));
    }
    let rules: Vec<_> = cors.children.iter().map(parse_rule).collect::<Result<_, _>>()?;
    let bytes: usize = rules.iter().map(rule_bytes).sum();
    if bytes > RULES_BYTES_MAX {
        return Err(invalid("the CORS rules are longer than 2 KiB"));
    }
    Ok(rules)
}

fn parse_rule(element: &Element) -> Result<CorsRule, DocumentRefusal> {
    const ORIGINS: &str = "AllowedOrigins";
    const ALLOWED_METHODS: &str = "AllowedMethods";
    const ALLOWED_HEADERS: &str = "AllowedHeaders";
    const EXPOSED_HEADERS: &str = "ExposedHeaders";
    const MAX_AGE: &str = "MaxAgeInSeconds";
    if element.name != "CorsRule" {
        return Err(DocumentRefusal::UnsupportedNode { name: element.name.clone() });
    }
    let fields =
        element.fields(&[ORIGINS, ALLOWED_METHODS, ALLOWED_HEADERS, EXPOSED_HEADERS, MAX_AGE])?;
    let list = |name| -> Result<Vec<String>, DocumentRefusal> {
        let text = fields.required(name)?.text.as_str();
        let list: Vec<_> = entries(text).map(str::to_owned).collect();
        if list.iter().any(|entry| entry.chars().count() > ENTRY_CHARACTERS_MAX) {
            return Err(value(name, text));
        }
        Ok(list)
    };
    let headers = |name| {
        let list = list(name)?;
        let prefixed = list.iter().filter(|entry| entry.len() > 1 && entry.ends_with('*')).count();
        if prefixed > PREFIXED_HEADERS_MAX || list.len() - prefixed > LITERAL_HEADERS_MAX {
            return Err(value(name, &list.join(",")));
        }
        Ok(list)
    };
    let allowed_origins = list(ORIGINS)?;
    if allowed_origins.is_empty() || allowed_origins.len() > ORIGINS_MAX {
        return Err(value(ORIGINS, &allowed_origins.join(",")));
    }
    let allowed_methods = list(ALLOWED_METHODS)?;
    let known = |method: &String| METHODS.contains(&method.as_str());
    if allowed_methods.is_empty() || !allowed_methods.iter().all(known) {
        return Err(value(ALLOWED_METHODS, &allowed_methods.join(",")));
    }
    let max_age = fields.integer(MAX_AGE, 0..=i32::MAX as u32)?;
    Ok(CorsRule {
        allowed_origins,
        allowed_methods,
        allowed_headers: headers(ALLOWED_HEADERS)?,
        exposed_headers: headers(EXPOSED_HEADERS)?,
        max_age_seconds: max_age.ok_or(DocumentRefusal::MissingNode { name: MAX_AGE })?,
    })
}

fn rule_bytes(rule: &CorsRule) -> usize {
    let lists = [
        &rule.allowed_origins,
        &rule.allowed_methods,
        &rule.allowed_headers,
        &rule.exposed_headers,
    ];
    let text: usize = lists.iter().flat_map(|list| list.iter()).map(|entry| entry.len() + 1).sum();
    text + rule.max_age_seconds.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &str, methods: &str, allowed: &str, exposed: &str) -> CorsRule {
        let list = |text: &str| entries(text).map(str::to_owned).collect();
        CorsRule {
            allowed_origins: list(origins),
            allowed_methods: list(methods),
            allowed_headers: list(allowed),
            exposed_headers: list(exposed),
            max_age_seconds: 200,
        }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> RequestHeaders {
        pairs.iter().copied().collect()
    }

    fn found<'a>(added: &'a Added, name: &str) -> Option<&'a str> {
        added.iter().find(|(added, _)| *added == name).map(|(_, text)| text.as_str())
    }

    /// One row of the table of `Vary` and `Access-Control-Allow-Origin` on GET and HEAD.
    struct VaryRow {
        case: &'static str,
        origin_sent: bool,
        rules: Vec<CorsRule>,
        vary: bool,
        allow_origin: Option<&'static str>,
        expose: bool,
    }

    #[test]
    fn every_row_of_the_vary_table_holds() {
        let any = || rule("*", "GET,HEAD", "", "x-ms-a");
        let exact = || rule("http://one.example", "GET,HEAD", "", "x-ms-a");
        let other = || rule("http://other.example", "GET,HEAD", "", "x-ms-a");
        let row = |case, origin_sent, rules, vary, allow_origin, expose| VaryRow {
            case,
            origin_sent,
            rules,
            vary,
            allow_origin,
            expose,
        };
        let rows = [
            row("no origin, no rules", false, vec![], false, None, false),
            row("no origin, rules that do not match", false, vec![exact()], true, None, false),
            row("no origin, a rule for all", false, vec![any()], false, Some("*"), true),
            row("an origin, no rules", true, vec![], false, None, false),
            row(
                "an origin, a rule that names it",
                true,
                vec![exact()],
                true,
                Some("http://one.example"),
                true,
            ),
            row("an origin, rules that do not match", true, vec![other()], true, None, false),
            row("an origin, a rule for all", true, vec![any()], false, Some("*"), true),
        ];
        for row in rows {
            let sent = if row.origin_sent { &[("origin", "http://one.example")][..] } else { &[] };
            for method in [Method::GET, Method::HEAD] {
                let added = actual(&row.rules, &method, &headers(sent), &AnswerHeaders::new());
                let case = row.case;
                assert_eq!(found(&added, "vary"), row.vary.then_some("Origin"), "{case}");
                assert_eq!(
                    found(&added, "access-control-allow-origin"),
                    row.allow_origin,
                    "{case}"
                );
                let expose = found(&added, "access-control-expose-headers");
                assert_eq!(expose, row.expose.then_some("x-ms-a"), "{case}");
                let credentials = row.allow_origin.filter(|origin| *origin != "*").map(|_| "true");
                let sent = found(&added, "access-control-allow-credentials");
                assert_eq!(sent, credentials, "{case}");
            }
        }
    }

    #[test]
    fn a_write_gets_no_vary_and_needs_an_origin() {
        let rules = [rule("*", "PUT", "", "")];
        let sent = headers(&[("origin", "http://a")]);
        let added = actual(&rules, &Method::PUT, &sent, &AnswerHeaders::new());
        assert_eq!(found(&added, "access-control-allow-origin"), Some("*"));
        assert_eq!(found(&added, "vary"), None);
        assert!(
            actual(&rules, &Method::PUT, &RequestHeaders::default(), &AnswerHeaders::new())
                .is_empty()
        );
        assert!(actual(&rules, &Method::DELETE, &sent, &AnswerHeaders::new()).is_empty());
    }

    #[test]
    fn prefixes_expose_the_headers_that_the_answer_has() {
        let rules = [rule("*", "GET", "", "x-ms-meta-*,ETag")];
        let mut response = AnswerHeaders::new();
        for name in ["etag", "x-ms-meta-a", "x-ms-other"] {
            response.set(name, "1");
        }
        let added = actual(&rules, &Method::GET, &RequestHeaders::default(), &response);
        assert_eq!(found(&added, "access-control-expose-headers"), Some("ETag,x-ms-meta-a"));
    }

    #[test]
    fn a_preflight_is_allowed_by_the_first_rule_of_its_origin_and_method() {
        let rules = [
            rule("http://one.example", "PUT,GET", "x-ms-meta-data*,x-ms-meta-target*", ""),
            rule("*", "PUT", "*", ""),
        ];
        let ask = |origin: &str, method: &str, asked: &str| {
            preflight(
                &rules,
                &headers(&[
                    ("origin", origin),
                    ("access-control-request-method", method),
                    ("access-control-request-headers", asked),
                ]),
            )
        };
        let added = ask("http://one.example", "PUT", "X-MS-Meta-Data1, x-ms-meta-target");
        let added = added.expect("it is allowed");
        assert_eq!(found(&added, "access-control-allow-origin"), Some("http://one.example"));
        assert_eq!(found(&added, "access-control-allow-methods"), Some("PUT"));
        assert_eq!(
            found(&added, "access-control-allow-headers"),
            Some("X-MS-Meta-Data1, x-ms-meta-target")
        );
        assert_eq!(found(&added, "access-control-max-age"), Some("200"));
        assert_eq!(found(&added, "access-control-allow-credentials"), Some("true"));
        // The second rule would allow the header, but the first decides.
        assert_eq!(ask("http://one.example", "PUT", "x-other"), Err(PreflightRefusal));
        assert!(ask("http://two.example", "PUT", "x-other").is_ok());
        assert_eq!(ask("http://two.example", "GET", ""), Err(PreflightRefusal));
        // Origins are compared with case.
        assert_eq!(ask("http://ONE.example", "GET", ""), Err(PreflightRefusal));
        assert_eq!(preflight(&[], &headers(&[("origin", "http://a")])), Err(PreflightRefusal));
    }

    #[test]
    fn a_wildcard_stands_for_subdomains() {
        let matches = |origin| origin_matches("https://*.example.org", origin);
        assert!(matches("https://a.example.org"));
        assert!(matches("https://a.b.example.org"));
        assert!(!matches("https://example.org"));
        assert!(!matches("https://.example.org"));
        assert!(!matches("http://a.example.org"));
        assert!(!matches("https://a.example.org.evil"));
        assert!(!matches("https://aexample.org"));
        assert!(!origin_matches("http://a", ""));
        let without_scheme = |origin| origin_matches("*.example.org", origin);
        assert!(without_scheme("https://a.example.org"));
        assert!(without_scheme("http://a.b.example.org"));
        assert!(!without_scheme("https://example.org"));
        assert!(!without_scheme("https://.example.org"));
        assert!(!without_scheme("https://a.example.org.evil"));
        assert!(!without_scheme("a.example.org"));
        assert!(!origin_matches("*example.org", "https://badexample.org"));
    }

    fn parsed(rules: &str) -> Result<Vec<CorsRule>, DocumentRefusal> {
        let document = format!("<Cors>{rules}</Cors>");
        parse(&crate::xml::document::parse(document.as_bytes(), "Cors").expect("well-formed"))
    }

    fn rule_xml(origins: &str, methods: &str, allowed: &str, max_age: &str) -> String {
        format!(
            "<CorsRule><AllowedOrigins>{origins}</AllowedOrigins>\
             <AllowedMethods>{methods}</AllowedMethods><AllowedHeaders>{allowed}</AllowedHeaders>\
             <ExposedHeaders/><MaxAgeInSeconds>{max_age}</MaxAgeInSeconds></CorsRule>"
        )
    }

    #[test]
    fn rules_within_the_limits_are_read() {
        let one = rule_xml("http://a, http://b", "GET,PUT", "x-ms-*,*", "200");
        let rules = parsed(&one.repeat(5)).expect("five rules");
        assert_eq!(rules.len(), 5);
        assert_eq!(rules[0], rule("http://a,http://b", "GET,PUT", "x-ms-*,*", ""));
        assert_eq!(parsed(""), Ok(Vec::new()));
    }

    #[test]
    fn rules_beyond_the_limits_are_refused() {
        let good = rule_xml("*", "GET", "", "1");
        assert!(parsed(&good.repeat(6)).is_err(), "six rules");
        let long = "a".repeat(257);
        let many = |count: usize| vec!["a"; count].join(",");
        for (case, xml) in [
            ("no origin", rule_xml("", "GET", "", "1")),
            ("a long origin", rule_xml(&long, "GET", "", "1")),
            ("65 origins", rule_xml(&many(65), "GET", "", "1")),
            ("no method", rule_xml("*", "", "", "1")),
            ("an unknown method", rule_xml("*", "GET,BREW", "", "1")),
            ("65 headers", rule_xml("*", "GET", &many(65), "1")),
            ("three prefixes", rule_xml("*", "GET", "a*,b*,c*", "1")),
            ("a negative age", rule_xml("*", "GET", "", "-1")),
            ("no age", rule_xml("*", "GET", "", "")),
            (
                "a missing node",
                "<CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule>".to_owned(),
            ),
            ("another node", "<Rule/>".to_owned()),
            (
                "2 KiB",
                rule_xml(&many(64), "GET", &"b".repeat(250), "1")
                    .repeat(5)
                    .replace("<AllowedHeaders>", &format!("<AllowedHeaders>{},", "c".repeat(200))),
            ),
        ] {
            assert!(parsed(&xml).is_err(), "{case}");
        }
    }
}
