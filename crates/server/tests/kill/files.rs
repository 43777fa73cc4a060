//! Files and directories of one share: creates, ranges written and cleared, renames of files and of
//! directories with their contents, deletes.
//!
//! Each writer has its own directory and knows the whole tree below it. After an operation without
//! an answer two trees are possible, and the server must have one of them: not a half-done rename, a
//! file without its directory or a partly written range.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::support::Server;
use crate::{Killed, Workload, joined};
use holdfast_random::Random;
use holdfast_testkit::client::{ACCOUNT, Client, NoAnswer};

pub const WRITERS: u64 = 12;
const SHARE: &str = "kill-share";
const DIRECTORIES: u64 = 3;
const FILES_PER_DIRECTORY: u64 = 3;
const FILE_BYTES: usize = 64 * 1024;
/// Up to this, so that some ranges are kept in rows and some in extents.
const RANGE_BYTES_MAX: u64 = 40 * 1024;

/// By path below the writer's directory: the content of a file, `None` for a directory.
type Tree = BTreeMap<String, Option<Arc<Vec<u8>>>>;

#[derive(Default)]
struct Owned {
    root: String,
    tree: Tree,
    /// The state if the operation without an answer has happened.
    maybe: Option<Tree>,
}

#[derive(Default)]
pub struct Files {
    operations: Arc<AtomicU64>,
    owned: Vec<Owned>,
    writers: Vec<JoinHandle<Owned>>,
}

#[async_trait]
impl Workload for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    async fn prepare(&mut self, server: &Server) {
        let mut client = Client::new(server.file);
        let path = format!("/{SHARE}");
        let created = client.send("PUT", &path, &[("restype", "share")], &[], Vec::new()).await;
        assert_eq!(created.expect("the server answers").status, 201);
        for writer in 0..WRITERS {
            let root = format!("/{SHARE}/writer-{writer:02}");
            let query = [("restype", "directory")];
            let created = client.send("PUT", &root, &query, &[], Vec::new()).await;
            assert_eq!(created.expect("the server answers").status, 201);
            self.owned.push(Owned { root, ..Owned::default() });
        }
    }

    async fn begin(&mut self, server: &Server, killed: &Killed, random: &mut Random) {
        for owned in self.owned.drain(..) {
            let writer = Writer {
                address: server.file,
                client: killed.limit(Client::new(server.file)),
                random: Random::new(random.number()),
                owned,
            };
            let write = writer.write_until_killed(killed.clone(), self.operations.clone());
            self.writers.push(tokio::spawn(write));
        }
    }

    async fn end(&mut self) {
        self.owned = joined(&mut self.writers).await;
    }

    async fn check(&mut self, server: &Server) {
        let mut client = Client::new(server.file);
        for owned in &mut self.owned {
            let found = read_tree(&mut client, &owned.root).await;
            if found != owned.tree {
                let is_maybe = owned.maybe.as_ref() == Some(&found);
                let (tree, maybe) = (names(&owned.tree), owned.maybe.as_ref().map(names));
                assert!(
                    is_maybe,
                    "{}: {:?} is neither {tree:?} nor {maybe:?}, or a content is another",
                    owned.root,
                    names(&found)
                );
            }
            owned.tree = found;
            owned.maybe = None;
        }
    }

    fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }
}

fn names(tree: &Tree) -> Vec<&str> {
    tree.keys().map(String::as_str).collect()
}

struct Writer {
    address: SocketAddr,
    client: Client,
    random: Random,
    owned: Owned,
}

impl Writer {
    async fn write_until_killed(mut self, killed: Killed, operations: Arc<AtomicU64>) -> Owned {
        while !killed.is() {
            operations.fetch_add(1, Ordering::SeqCst);
            if self.write().await.is_err() {
                killed.expect();
                break;
            }
        }
        self.owned
    }

    async fn write(&mut self) -> Result<(), NoAnswer> {
        let directory = format!("d{}", self.random.below(DIRECTORIES));
        if !self.owned.tree.contains_key(&directory) {
            return self.create_directory(&directory).await;
        }
        let file = format!("{directory}/f{}", self.random.below(FILES_PER_DIRECTORY));
        if !self.owned.tree.contains_key(&file) {
            return self.create_file(&file).await;
        }
        match self.random.below(12) {
            0 => self.create_file(&file).await,
            1 => self.delete(&file, &[]).await,
            2 | 3 => self.rename_file(&file).await,
            4 | 5 => self.rename_directory(&directory).await,
            6 => self.put_range(&file, true).await,
            _ => self.put_range(&file, false).await,
        }
    }

    /// Sends the operation that leads to `next`, and records whether it was answered.
    async fn send(
        &mut self,
        (method, path): (&str, &str),
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: Vec<u8>,
        next: Tree,
    ) -> Result<(), NoAnswer> {
        let path = format!("{}/{path}", self.owned.root);
        let Ok(answer) = self.client.send(method, &path, query, headers, body).await else {
            self.owned.maybe = Some(next);
            return Err(NoAnswer);
        };
        assert!(answer.status.is_success(), "{method} {path} {query:?}: {answer:?}");
        self.owned.tree = next;
        Ok(())
    }

    async fn create_directory(&mut self, path: &str) -> Result<(), NoAnswer> {
        let mut next = self.owned.tree.clone();
        next.insert(path.to_owned(), None);
        self.send(("PUT", path), &[("restype", "directory")], &[], Vec::new(), next).await
    }

    /// Creates a file, or replaces the existing one.
    async fn create_file(&mut self, path: &str) -> Result<(), NoAnswer> {
        let mut next = self.owned.tree.clone();
        next.insert(path.to_owned(), Some(Arc::new(vec![0; FILE_BYTES])));
        let length = FILE_BYTES.to_string();
        let headers = [("x-ms-content-length", length.as_str()), ("x-ms-type", "file")];
        self.send(("PUT", path), &[], &headers, Vec::new(), next).await
    }

    async fn delete(&mut self, path: &str, query: &[(&str, &str)]) -> Result<(), NoAnswer> {
        let mut next = self.owned.tree.clone();
        next.remove(path);
        self.send(("DELETE", path), query, &[], Vec::new(), next).await
    }

    async fn put_range(&mut self, path: &str, clears: bool) -> Result<(), NoAnswer> {
        let length = 1 + self.random.below(RANGE_BYTES_MAX);
        let first = self.random.below(FILE_BYTES as u64 - length + 1);
        let body = if clears { Vec::new() } else { self.random.bytes(length as usize) };
        let mut next = self.owned.tree.clone();
        let content = next.get_mut(path).and_then(Option::as_mut).expect("a file is there");
        let written = &mut Arc::make_mut(content)[first as usize..(first + length) as usize];
        if clears {
            written.fill(0);
        } else {
            written.copy_from_slice(&body);
        }
        let range = format!("bytes={first}-{}", first + length - 1);
        let write = if clears { "clear" } else { "update" };
        let headers = [("x-ms-range", range.as_str()), ("x-ms-write", write)];
        self.send(("PUT", path), &[("comp", "range")], &headers, body, next).await
    }

    /// Renames to any existing directory, possibly replacing a file.
    async fn rename_file(&mut self, from: &str) -> Result<(), NoAnswer> {
        let directory = format!("d{}", self.random.below(DIRECTORIES));
        let to = format!("{directory}/f{}", self.random.below(FILES_PER_DIRECTORY));
        if to == from || !self.owned.tree.contains_key(&directory) {
            return Ok(());
        }
        let mut next = self.owned.tree.clone();
        let content = next.remove(from).expect("the file is there");
        next.insert(to.clone(), content);
        self.rename(from, &to, &[("comp", "rename")], next).await
    }

    /// Renames a directory with its contents to a free name.
    async fn rename_directory(&mut self, from: &str) -> Result<(), NoAnswer> {
        let to = format!("d{}", self.random.below(DIRECTORIES));
        if self.owned.tree.contains_key(&to) {
            // An existing directory is deleted first: its files one by one, then itself.
            let inside = format!("{to}/");
            let file = self.owned.tree.keys().find(|path| path.starts_with(&inside)).cloned();
            return match file {
                Some(file) => self.delete(&file, &[]).await,
                None => self.delete(&to, &[("restype", "directory")]).await,
            };
        }
        let inside = format!("{from}/");
        let renamed = |path: &String| match path.strip_prefix(&inside) {
            Some(name) => format!("{to}/{name}"),
            None if path == from => to.clone(),
            None => path.clone(),
        };
        let next = self.owned.tree.iter().map(|(path, node)| (renamed(path), node.clone()));
        let next = next.collect();
        self.rename(from, &to, &[("comp", "rename"), ("restype", "directory")], next).await
    }

    async fn rename(
        &mut self,
        from: &str,
        to: &str,
        query: &[(&str, &str)],
        next: Tree,
    ) -> Result<(), NoAnswer> {
        let source = format!("http://{}/{ACCOUNT}{}/{from}", self.address, self.owned.root);
        let headers = [
            ("x-ms-file-rename-replace-if-exists", "true"),
            ("x-ms-file-rename-source", source.as_str()),
        ];
        self.send(("PUT", to), query, &headers, Vec::new(), next).await
    }
}

/// Everything that listings and downloads show below a directory.
async fn read_tree(client: &mut Client, root: &str) -> Tree {
    let mut tree = Tree::new();
    let mut left = vec![String::new()];
    while let Some(directory) = left.pop() {
        let path = format!("{root}{}{directory}", if directory.is_empty() { "" } else { "/" });
        let query = [("comp", "list"), ("restype", "directory")];
        let answer = client.send("GET", &path, &query, &[], Vec::new()).await;
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        let listing = String::from_utf8(answer.body.to_vec()).expect("the listing is UTF-8");
        let inside = |name: &str| match directory.as_str() {
            "" => name.to_owned(),
            directory => format!("{directory}/{name}"),
        };
        for name in listed(&listing, "Directory") {
            left.push(inside(name));
            tree.insert(inside(name), None);
        }
        for name in listed(&listing, "File") {
            let path = format!("{root}/{}", inside(name));
            let answer = client.send("GET", &path, &[], &[], Vec::new()).await;
            let answer = answer.expect("the server answers");
            assert_eq!(answer.status, 200, "{path} is listed: {answer:?}");
            tree.insert(inside(name), Some(Arc::new(answer.body.to_vec())));
        }
    }
    tree
}

/// The names of the entries of one kind; none of them needs escaping.
fn listed<'text>(listing: &'text str, kind: &str) -> Vec<&'text str> {
    let entries = listing.split(&format!("<{kind}>")).skip(1).collect::<Vec<_>>();
    let name = |entry: &'text str| entry.split_once("<Name>")?.1.split_once("</Name>");
    entries.into_iter().filter_map(name).map(|(name, _)| name).collect()
}
