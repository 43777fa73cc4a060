//! Containers, queues, tables and shares on a server: listed, looked at, made and changed.

use holdfast_verify::account::Service;
use holdfast_verify::client::{Answer, Headers};
use hyper::Method;
use serde_json::Value;

use super::{Endpoint, Failure, Request, path, xml};
use crate::model::{Container, Metadata, Page, Policy};
use crate::plan::{MARK, sendable};

const METADATA_PREFIX: &str = "x-ms-meta-";
pub const JSON: (&str, &str) = ("accept", "application/json;odata=minimalmetadata");

/// The headers that say this metadata.
pub fn metadata_headers(metadata: &Metadata) -> impl Iterator<Item = (String, String)> {
    let (metadata, _) = sendable(metadata);
    metadata.into_iter().map(|(name, value)| (format!("{METADATA_PREFIX}{name}"), value))
}

/// The header that says that an object is not whole.
pub fn mark_header() -> (String, String) {
    (format!("{METADATA_PREFIX}{MARK}"), "1".to_owned())
}

pub fn read_metadata(headers: &Headers) -> Metadata {
    let pairs = headers.iter().filter_map(|(name, value)| {
        let (prefix, rest) = name.split_at_checked(METADATA_PREFIX.len())?;
        let is_metadata = prefix.eq_ignore_ascii_case(METADATA_PREFIX);
        is_metadata.then(|| (rest.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

pub fn xml_metadata(element: &xml::Element) -> Metadata {
    let pairs = element.children_of("Metadata");
    pairs.map(|pair| (pair.name.clone(), pair.text.clone())).collect()
}

pub fn next_marker(list: &xml::Element) -> Option<String> {
    Some(list.text_of("NextMarker").to_owned()).filter(|marker| !marker.is_empty())
}

/// What the address of a container of the service has beside its name.
fn restype(service: Service) -> Option<&'static str> {
    match service {
        Service::Blob => Some("container"),
        Service::File => Some("share"),
        Service::Queue | Service::Table => None,
    }
}

fn of_container(method: Method, service: Service, name: &str) -> Request {
    let request = Request::new(service, method, path(name, ""));
    match restype(service) {
        Some(restype) => request.query("restype", restype),
        None => request,
    }
}

impl Endpoint {
    /// Without policies.
    pub async fn list(
        &self,
        service: Service,
        after: Option<&str>,
    ) -> Result<Page<Container>, Failure> {
        let name = match service {
            Service::Blob => "Container",
            Service::Queue => "Queue",
            Service::File => "Share",
            Service::Table => return self.list_tables(after).await,
        };
        let mut request = Request::get(service, "/".to_owned())
            .query("comp", "list")
            .query("include", "metadata");
        if let Some(after) = after {
            request = request.query("marker", after);
        }
        let list = self.xml(request).await?;
        let container = |element: &xml::Element| {
            let properties = element.child("Properties");
            let property = |name| properties.map_or("", |it| it.text_of(name));
            Container {
                name: element.text_of("Name").to_owned(),
                metadata: xml_metadata(element),
                public_access: property("PublicAccess").to_owned(),
                quota: property("Quota").parse().ok(),
                policies: Vec::new(),
            }
        };
        let plural = format!("{name}s");
        let items = list.children_of(&plural).filter(|it| it.name == name);
        Ok(Page { items: items.map(container).collect(), next: next_marker(&list) })
    }

    async fn list_tables(&self, after: Option<&str>) -> Result<Page<Container>, Failure> {
        let mut request = Request::get(Service::Table, "/Tables".to_owned()).header(JSON.0, JSON.1);
        if let Some(after) = after {
            request = request.query("NextTableName", after);
        }
        let answer = self.send(request).await?;
        let json: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| Failure::unexpected("list of tables"))?;
        let tables =
            json["value"].as_array().ok_or_else(|| Failure::unexpected("list of tables"))?;
        let names = tables.iter().filter_map(|table| table["TableName"].as_str());
        let table = |name: &str| Container { name: name.to_owned(), ..Container::default() };
        let next = answer.headers.get("x-ms-continuation-NextTableName").map(str::to_owned);
        Ok(Page { items: names.map(table).collect(), next })
    }

    /// Without policies, and how many messages a queue has; none if it is not there.
    pub async fn container(
        &self,
        service: Service,
        name: &str,
    ) -> Result<Option<(Container, u64)>, Failure> {
        if service == Service::Table {
            return self.table(name).await;
        }
        let request = of_container(Method::GET, service, name);
        let request = match service {
            Service::Queue => request.query("comp", "metadata"),
            Service::Blob | Service::Table | Service::File => request,
        };
        let answer = match self.send(request).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(404) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let header = |name| answer.headers.get(name).unwrap_or_default();
        let container = Container {
            name: name.to_owned(),
            metadata: read_metadata(&answer.headers),
            public_access: header("x-ms-blob-public-access").to_owned(),
            quota: header("x-ms-share-quota").parse().ok(),
            policies: Vec::new(),
        };
        let messages = header("x-ms-approximate-messages-count").parse().unwrap_or(0);
        Ok(Some((container, messages)))
    }

    /// A signature does not open the policies of a table, so it is looked for in the list.
    async fn table(&self, name: &str) -> Result<Option<(Container, u64)>, Failure> {
        let request = Request::get(Service::Table, "/Tables".to_owned())
            .header(JSON.0, JSON.1)
            .query("$filter", format!("TableName eq '{}'", name.replace('\'', "''")));
        let answer = self.send(request).await?;
        let json: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| Failure::unexpected("list of tables"))?;
        let is_there = json["value"].as_array().is_some_and(|tables| !tables.is_empty());
        let table = Container { name: name.to_owned(), ..Container::default() };
        Ok(is_there.then_some((table, 0)))
    }

    pub async fn policies(&self, service: Service, name: &str) -> Result<Vec<Policy>, Failure> {
        let request = of_container(Method::GET, service, name).query("comp", "acl");
        let list = self.xml(request).await?;
        let identifiers = list.children.iter().filter(|it| it.name == "SignedIdentifier");
        let policy = |element: &xml::Element| {
            let terms = element.child("AccessPolicy");
            let term = |name| terms.map_or("", |it| it.text_of(name)).to_owned();
            Policy {
                id: element.text_of("Id").to_owned(),
                start: term("Start"),
                expiry: term("Expiry"),
                permission: term("Permission"),
            }
        };
        Ok(identifiers.map(policy).collect())
    }

    /// Sets public access, too.
    pub async fn set_policies(
        &self,
        service: Service,
        container: &Container,
    ) -> Result<Answer, Failure> {
        let mut body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><SignedIdentifiers>".to_owned();
        for policy in &container.policies {
            let terms = [
                ("Start", &policy.start),
                ("Expiry", &policy.expiry),
                ("Permission", &policy.permission),
            ];
            body.push_str("<SignedIdentifier><Id>");
            body.push_str(&xml::escape(&policy.id));
            body.push_str("</Id><AccessPolicy>");
            for (name, value) in terms.into_iter().filter(|(_, value)| !value.is_empty()) {
                body.push_str(&format!("<{name}>{}</{name}>", xml::escape(value)));
            }
            body.push_str("</AccessPolicy></SignedIdentifier>");
        }
        body.push_str("</SignedIdentifiers>");
        let request = of_container(Method::PUT, service, &container.name)
            .query("comp", "acl")
            .header("x-ms-blob-public-access", &*container.public_access)
            .content_type("application/xml")
            .body(body);
        self.send(request).await
    }

    /// Without policies. A queue that is marked gets its own metadata when its messages are there.
    pub async fn create(
        &self,
        service: Service,
        container: &Container,
        is_marked: bool,
    ) -> Result<(), Failure> {
        if service == Service::Table {
            let body = Value::from_iter([("TableName", container.name.as_str())]).to_string();
            let request = Request::new(service, Method::POST, "/Tables".to_owned())
                .header(JSON.0, JSON.1)
                .header("prefer", "return-no-content")
                .content_type("application/json")
                .body(body);
            self.send(request).await?;
            return Ok(());
        }
        let mut request = of_container(Method::PUT, service, &container.name);
        request = match is_marked {
            true => request.headers([mark_header()]),
            false => request.headers(metadata_headers(&container.metadata)),
        };
        if service == Service::Blob {
            request = request.header("x-ms-blob-public-access", &*container.public_access);
        }
        if let Some(quota) = container.quota {
            request = request.header("x-ms-share-quota", quota.to_string());
        }
        self.send(request).await?;
        Ok(())
    }

    pub async fn set_metadata(
        &self,
        service: Service,
        container: &Container,
    ) -> Result<(), Failure> {
        let request = of_container(Method::PUT, service, &container.name)
            .query("comp", "metadata")
            .headers(metadata_headers(&container.metadata));
        self.send(request).await?;
        Ok(())
    }
}
