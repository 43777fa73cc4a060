//! Directories and files of shares on a server.

use bytes::Bytes;
use holdfast_verify::account::Service;
use holdfast_verify::client::Answer;
use hyper::Method;

use super::blobs::{range, ranges};
use super::lists::{mark_header, metadata_headers, next_marker, read_metadata};
use super::{Endpoint, Failure, Request, path, xml};
use crate::model::{ContentHeaders, Metadata, Node, Page};

const PAGE_NODES: &str = "1000";

pub fn request(method: Method, share: &str, node: &Node) -> Request {
    let request = Request::new(Service::File, method, path(share, &node.path));
    if node.is_directory { request.query("restype", "directory") } else { request }
}

fn content_headers(headers: &ContentHeaders) -> [(String, String); 6] {
    let ContentHeaders { content_type, encoding, language, disposition, cache_control, md5 } =
        headers.clone();
    [
        ("x-ms-content-type", content_type),
        ("x-ms-content-encoding", encoding),
        ("x-ms-content-language", language),
        ("x-ms-content-disposition", disposition),
        ("x-ms-cache-control", cache_control),
        ("x-ms-content-md5", md5),
    ]
    .map(|(name, value)| (name.to_owned(), value))
}

fn smb_headers(node: &Node) -> [(String, String); 3] {
    [
        ("x-ms-file-attributes", &node.attributes),
        ("x-ms-file-creation-time", &node.created),
        ("x-ms-file-last-write-time", &node.written),
    ]
    .map(|(name, value)| (name.to_owned(), value.clone()))
}

impl Endpoint {
    /// What is in a directory: paths, kinds and lengths.
    pub async fn list_directory(
        &self,
        share: &str,
        directory: &str,
        after: Option<&str>,
    ) -> Result<Page<Node>, Failure> {
        let mut request = Request::get(Service::File, path(share, directory))
            .query("restype", "directory")
            .query("comp", "list")
            .query("maxresults", PAGE_NODES);
        if let Some(after) = after {
            request = request.query("marker", after);
        }
        let list = self.xml(request).await?;
        let node = |element: &xml::Element| {
            let name = element.name_of("Name");
            let is_directory = element.name == "Directory";
            let properties = element.child("Properties");
            let length = properties.map_or("", |it| it.text_of("Content-Length"));
            Node {
                path: if directory.is_empty() { name } else { format!("{directory}/{name}") },
                is_directory,
                length: length.parse().unwrap_or(0),
                headers: ContentHeaders::default(),
                metadata: Metadata::new(),
                attributes: String::new(),
                created: String::new(),
                written: String::new(),
                etag: String::new(),
            }
        };
        let entries = list.children_of("Entries");
        let entries = entries.filter(|it| matches!(it.name.as_str(), "File" | "Directory"));
        Ok(Page { items: entries.map(node).collect(), next: next_marker(&list) })
    }

    /// None if it is not there.
    pub async fn node(&self, share: &str, node: &Node) -> Result<Option<Node>, Failure> {
        let answer = match self.send(request(Method::HEAD, share, node)).await {
            Ok(answer) => answer,
            Err(failure) if failure.is(404) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let text = |name: &str| answer.headers.get(name).unwrap_or_default().to_owned();
        let headers = ContentHeaders {
            content_type: text("content-type"),
            encoding: text("content-encoding"),
            language: text("content-language"),
            disposition: text("content-disposition"),
            cache_control: text("cache-control"),
            md5: text("content-md5"),
        };
        Ok(Some(Node {
            path: node.path.clone(),
            is_directory: node.is_directory,
            length: text("content-length").parse().unwrap_or(0),
            headers: if node.is_directory { ContentHeaders::default() } else { headers },
            metadata: read_metadata(&answer.headers),
            attributes: text("x-ms-file-attributes"),
            created: text("x-ms-file-creation-time"),
            written: text("x-ms-file-last-write-time"),
            etag: text("etag"),
        }))
    }

    pub async fn file_ranges(&self, share: &str, file: &Node) -> Result<Vec<(u64, u64)>, Failure> {
        let request = request(Method::GET, share, file).query("comp", "rangelist");
        let answer = self.send(request).await?;
        check_etag(file, &answer)?;
        let list = xml::parse(&answer.body).ok_or_else(|| Failure::unexpected("list of ranges"))?;
        ranges(&list, "Range", file.length).ok_or_else(|| Failure::unexpected("list of ranges"))
    }

    /// Fails with status 412 if the file is not the one of the ETag: the service takes no
    /// conditions on ETags here.
    pub async fn read_file(
        &self,
        share: &str,
        file: &Node,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, Failure> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let request = request(Method::GET, share, file).header("x-ms-range", range(offset, length));
        let answer = self.send(request).await?;
        check_etag(file, &answer)?;
        if answer.body.len() as u64 != length {
            return Err(Failure::unexpected("part of a file"));
        }
        Ok(answer.body)
    }

    /// A file is marked: its content is missing.
    pub async fn create_node(&self, share: &str, node: &Node) -> Result<(), Failure> {
        let request = request(Method::PUT, share, node).header("x-ms-file-permission", "inherit");
        let request = if node.is_directory {
            request.headers(smb_headers(node)).headers(metadata_headers(&node.metadata))
        } else {
            request
                // Not yet its own: nothing can be written to a file that is read-only.
                .header("x-ms-file-attributes", "None")
                .header("x-ms-file-creation-time", "now")
                .header("x-ms-file-last-write-time", "now")
                .header("x-ms-type", "file")
                .header("x-ms-content-length", node.length.to_string())
                .headers(content_headers(&node.headers))
                .headers([mark_header()])
        };
        self.send(request).await?;
        Ok(())
    }

    pub async fn write_file(
        &self,
        share: &str,
        file: &Node,
        offset: u64,
        bytes: Bytes,
    ) -> Result<(), Failure> {
        let request = request(Method::PUT, share, file)
            .query("comp", "range")
            .header("x-ms-write", "update")
            .header("x-ms-range", range(offset, bytes.len() as u64))
            .body(bytes);
        self.send(request).await?;
        Ok(())
    }

    /// At the end, when the content is there: its times, and then its metadata without the mark.
    pub async fn finish_node(&self, share: &str, node: &Node) -> Result<(), Failure> {
        // Metadata cannot be set where nothing can be written.
        let is_writable = !is_read_only(node);
        let writable = Node { attributes: "None".to_owned(), ..node.clone() };
        self.set_properties(share, if is_writable { node } else { &writable }).await?;
        let metadata = request(Method::PUT, share, node)
            .query("comp", "metadata")
            .headers(metadata_headers(&node.metadata));
        self.send(metadata).await?;
        if is_writable { Ok(()) } else { self.set_properties(share, node).await }
    }

    /// Lets a file be written again that is to be replaced.
    pub async fn make_writable(&self, share: &str, there: &Node) -> Result<(), Failure> {
        let writable = Node { attributes: "None".to_owned(), ..there.clone() };
        if is_read_only(there) { self.set_properties(share, &writable).await } else { Ok(()) }
    }

    async fn set_properties(&self, share: &str, node: &Node) -> Result<(), Failure> {
        let mut request = request(Method::PUT, share, node)
            .query("comp", "properties")
            .headers(smb_headers(node))
            .header("x-ms-file-permission", "preserve");
        if !node.is_directory {
            request = request.headers(content_headers(&node.headers));
        }
        self.send(request).await?;
        Ok(())
    }
}

fn is_read_only(node: &Node) -> bool {
    node.attributes.split(['|', ' ']).any(|attribute| attribute == "ReadOnly")
}

fn check_etag(file: &Node, answer: &Answer) -> Result<(), Failure> {
    match answer.headers.get("etag") {
        Some(etag) if etag == file.etag => Ok(()),
        Some(_) | None => Err(Failure::Refused { status: 412, code: "ETag".to_owned() }),
    }
}
