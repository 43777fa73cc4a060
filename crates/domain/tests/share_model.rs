//! Random operations on a share and its snapshots, compared with maps in maps. The seed is printed,
//! and `HOLDFAST_SHARE_SEED` repeats a run.

mod support;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use holdfast_domain::Failure;
use holdfast_domain::share::{
    CopiedProperties, CopyFile, FileCopyRefusal, FileCopySource, FileRefusal, GetNode, ShareState,
    Wanted,
};
use holdfast_random::Random;
use holdfast_store::{KeyRange, Order};
use support::share::{AtOnce, Files, at, get};

const OPERATIONS: usize = 600;
const RUNS: u64 = 6;
const SNAPSHOTS: usize = 4;
const LENGTH_MAX: u64 = 6000;
const DEPTH_MAX: usize = 4;

fn random_name(random: &mut Random) -> String {
    ["a", "A", "b", "c", "d", "ä", "Ä", "e"][random.within(0..8)].to_owned()
}

fn random_path(random: &mut Random) -> Vec<String> {
    (0..=random.below(2)).map(|_| random_name(random)).collect()
}

type Children = BTreeMap<String, (String, Model)>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Model {
    Directory(Children),
    File(Vec<u8>),
}

fn fold(name: &str) -> String {
    name.to_uppercase()
}

impl Model {
    /// What is in the directory that the path is in.
    fn siblings(&mut self, path: &[String]) -> Result<&mut Children, FileRefusal> {
        match (self, path) {
            (Self::Directory(children), [_]) => Ok(children),
            (Self::Directory(children), [first, rest @ ..]) => {
                let child = children.get_mut(&fold(first));
                child.ok_or(FileRefusal::ParentNotFound)?.1.siblings(rest)
            }
            (_, _) => Err(FileRefusal::ParentNotFound),
        }
    }

    /// The paths of everything below, as written.
    fn paths(&self) -> Vec<Vec<String>> {
        let Self::Directory(children) = self else { return Vec::new() };
        let mut paths = Vec::new();
        for (name, child) in children.values() {
            paths.push(vec![name.clone()]);
            let below = child.paths().into_iter();
            paths.extend(below.map(|path| [vec![name.clone()], path].concat()));
        }
        paths
    }

    fn file(&mut self, path: &[String]) -> Result<&mut Vec<u8>, FileRefusal> {
        let name = fold(&path[path.len() - 1]);
        match self.siblings(path)?.get_mut(&name) {
            None => Err(FileRefusal::NotFound),
            Some((_, Self::Directory(_))) => Err(FileRefusal::WrongKind),
            Some((_, Self::File(content))) => Ok(content),
        }
    }

    fn create(&mut self, path: &[String], new: Self) -> Result<(), FileRefusal> {
        let name = path[path.len() - 1].clone();
        let siblings = self.siblings(path)?;
        match (siblings.get(&fold(&name)), &new) {
            (Some((_, Self::Directory(_))), Self::Directory(_)) => {
                return Err(FileRefusal::AlreadyExists);
            }
            (Some((_, Self::Directory(_))), Self::File(_))
            | (Some((_, Self::File(_))), Self::Directory(_)) => return Err(FileRefusal::WrongKind),
            (Some((_, Self::File(_))) | None, _) => {}
        }
        siblings.insert(fold(&name), (name, new));
        Ok(())
    }

    fn delete(&mut self, path: &[String]) -> Result<(), FileRefusal> {
        let name = fold(&path[path.len() - 1]);
        let siblings = self.siblings(path)?;
        match siblings.get(&name) {
            None => return Err(FileRefusal::NotFound),
            Some((_, Self::Directory(children))) if !children.is_empty() => {
                return Err(FileRefusal::DirectoryNotEmpty);
            }
            Some(_) => {}
        }
        siblings.remove(&name);
        Ok(())
    }

    fn rename(&mut self, from: &[String], to: &[String], replace: bool) -> Result<(), FileRefusal> {
        let (old, new) = (fold(&from[from.len() - 1]), to[to.len() - 1].clone());
        let source = self.siblings(from)?.get(&old).cloned();
        let existing = self.siblings(to)?.get(&fold(&new)).cloned();
        let (_, node) = source.ok_or(FileRefusal::NotFound)?;
        let folded = |path: &[String]| path.iter().map(|name| fold(name)).collect::<Vec<_>>();
        let (from_folded, to_folded) = (folded(from), folded(to));
        if to_folded.len() > from_folded.len() && to_folded.starts_with(&from_folded) {
            return Err(FileRefusal::IntoItself);
        }
        if let Some((_, existing)) = existing.filter(|_| from_folded != to_folded) {
            match (&node, &existing) {
                _ if !replace => return Err(FileRefusal::AlreadyExists),
                (Self::Directory(_), Self::Directory(_)) => {
                    return Err(FileRefusal::AlreadyExists);
                }
                (Self::File(_), Self::Directory(_)) => return Err(FileRefusal::WrongKind),
                (_, Self::File(_)) => {}
            }
        }
        self.siblings(from)?.remove(&old);
        self.siblings(to)?.insert(fold(&new), (new, node));
        Ok(())
    }
}

struct Run {
    files: Files,
    random: Random,
    model: Model,
    snapshots: Vec<(ShareState, Model)>,
    written: u64,
    succeeded: usize,
}

impl Run {
    async fn new(seed: u64) -> Self {
        let model = Model::Directory(Children::new());
        let files = Files::new().await;
        Self {
            files,
            random: Random::new(seed),
            model,
            snapshots: Vec::new(),
            written: 0,
            succeeded: 0,
        }
    }

    /// Mostly the path of an existing node, or of a possible neighbour.
    fn path(&mut self) -> Vec<String> {
        let known = self.model.paths();
        if known.is_empty() || self.random.below(4) == 0 {
            return random_path(&mut self.random);
        }
        let mut path = known[self.random.below(known.len() as u64) as usize].clone();
        match self.random.below(6) {
            0 => drop(path.pop()),
            1 if path.len() < DEPTH_MAX => {}
            _ => return path,
        }
        path.push(random_name(&mut self.random));
        path
    }

    async fn step(&mut self) {
        let path = self.path();
        let text = path.join("/");
        let (done, expected) = match self.random.below(20) {
            0..=2 => {
                let done = self.files.create_directory(&text).await.map(drop);
                (done, self.model.create(&path, Model::Directory(Children::new())))
            }
            3..=5 => {
                let length = self.random.below(LENGTH_MAX);
                let done = self.files.create_file(&text, length).await.map(drop);
                (done, self.model.create(&path, Model::File(vec![0; length as usize])))
            }
            6..=7 => (self.files.delete(&text).await, self.model.delete(&path)),
            8..=10 => self.write(&path).await,
            11 => self.clear(&path).await,
            12 => {
                let length = self.random.below(LENGTH_MAX);
                let done = self.files.resize(&text, length).await.map(drop);
                let resized = |content: &mut Vec<u8>| content.resize(length as usize, 0);
                (done, self.model.file(&path).map(resized))
            }
            13..=15 => {
                let (to, replace) = (self.path(), self.random.below(2) == 0);
                let done = self.files.rename(&text, &to.join("/"), replace).await.map(drop);
                (done, self.model.rename(&path, &to, replace))
            }
            16..=17 => self.copy(&path).await,
            18 if self.snapshots.len() < SNAPSHOTS => {
                self.snapshots.push((self.files.snapshot().await, self.model.clone()));
                return;
            }
            18 => {
                let at = self.random.below(SNAPSHOTS as u64) as usize;
                let (state, _) = self.snapshots.remove(at);
                self.files.delete_snapshot(state).await;
                return;
            }
            _ => return self.files.store.collect_garbage().await,
        };
        self.succeeded += usize::from(done.is_ok());
        assert_eq!(done, expected, "{text}");
    }

    async fn write(
        &mut self,
        path: &[String],
    ) -> (Result<(), FileRefusal>, Result<(), FileRefusal>) {
        let (offset, length) = (self.random.below(3000), 1 + self.random.below(2000));
        self.written += 1;
        let bytes = vec![(1 + self.written % 255) as u8; length as usize];
        let done = self.files.write(&path.join("/"), offset, &bytes).await.map(drop);
        let range = offset as usize..(offset + length) as usize;
        let expected = self.model.file(path).and_then(|content| {
            let target = content.get_mut(range).ok_or(FileRefusal::RangePastEnd)?;
            target.copy_from_slice(&bytes);
            Ok(())
        });
        (done, expected)
    }

    async fn clear(
        &mut self,
        path: &[String],
    ) -> (Result<(), FileRefusal>, Result<(), FileRefusal>) {
        let start = self.random.below(3000);
        let range = start..start + 1 + self.random.below(3000);
        let done = self.files.clear(&path.join("/"), range.clone()).await.map(drop);
        let expected = self.model.file(path).and_then(|content| {
            let range = range.start as usize..range.end as usize;
            content.get_mut(range).ok_or(FileRefusal::RangePastEnd)?.fill(0);
            Ok(())
        });
        (done, expected)
    }

    /// From the share, or from one of its snapshots.
    async fn copy(
        &mut self,
        path: &[String],
    ) -> (Result<(), FileRefusal>, Result<(), FileRefusal>) {
        let from = self.path();
        let at_snapshot = self.random.below(SNAPSHOTS as u64 + 1) as usize;
        let (state, mut source) = match self.snapshots.get(at_snapshot) {
            Some((state, model)) => (*state, model.clone()),
            None => (ShareState::Current, self.model.clone()),
        };
        let file = GetNode { state, wanted: Wanted::File, ..get(&from.join("/")) };
        let command = CopyFile {
            address: at(&path.join("/")),
            source: FileCopySource::File(file),
            source_url: String::new(),
            copy_id: String::new(),
            metadata: None,
            properties: CopiedProperties::default(),
            ignore_read_only: false,
            set_archive: false,
            lease_id: None,
        };
        let done = match self.files.store.domain.at_once(command).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(
                FileCopyRefusal::SourceFile(refusal) | FileCopyRefusal::Destination(refusal),
            )) => Err(refusal),
            Err(failure) => panic!("{failure:?}"),
        };
        // The destination is looked up first: without its parent the source is not read.
        let expected = self
            .model
            .siblings(path)
            .map(drop)
            .and_then(|()| source.file(&from).cloned())
            .and_then(|content| self.model.create(path, Model::File(content)));
        (done, expected)
    }

    async fn check(&mut self) {
        let limit = 1 + self.random.below(4) as usize;
        let found = self.tree(String::new(), ShareState::Current, limit).await;
        assert_eq!(found, self.model, "the share");
        for (state, model) in &self.snapshots {
            assert_eq!(self.tree(String::new(), *state, limit).await, *model, "{state:?}");
        }
    }

    /// All that is found below a path.
    fn tree<'run>(
        &'run self,
        path: String,
        state: ShareState,
        limit: usize,
    ) -> Pin<Box<dyn Future<Output = Model> + 'run>> {
        Box::pin(async move {
            let node = self.files.get(&path, state).await.expect("it is listed").node;
            if !node.is_directory() {
                return Model::File(self.files.read(&path, state).await.expect("it is listed"));
            }
            let mut children = Children::new();
            for name in self.files.list(&path, state, limit).await.expect("a directory") {
                let slash = if path.is_empty() { "" } else { "/" };
                let child = self.tree(format!("{path}{slash}{name}"), state, limit).await;
                assert_eq!(children.insert(fold(&name), (name, child)), None, "listed once");
            }
            Model::Directory(children)
        })
    }

    /// Removes everything; no rows may be left.
    async fn end(mut self) {
        if self.random.below(2) == 0 {
            for (state, _) in std::mem::take(&mut self.snapshots) {
                self.files.delete_snapshot(state).await;
            }
            self.files.store.collect_garbage().await;
            self.check().await;
        }
        self.files.delete_share().await;
        self.files.store.collect_garbage().await;
        let snapshot = self.files.engine.snapshot().await.expect("memory reads");
        let left = snapshot.scan(&KeyRange::all(), Order::Ascending, 10).await.expect("rows");
        assert_eq!(left, Vec::new(), "rows are left");
        assert_eq!(self.files.store.bytes_in_extents(), 0, "bytes are left");
    }
}

#[tokio::test]
async fn a_share_and_its_snapshots_are_maps_in_maps() {
    let given = std::env::var("HOLDFAST_SHARE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(1..=RUNS, |seed: u64| seed..=seed);
    for seed in seeds {
        println!("HOLDFAST_SHARE_SEED={seed}");
        let mut run = Run::new(seed).await;
        for operation in 0..OPERATIONS {
            run.step().await;
            if operation % 20 == 0 {
                run.check().await;
            }
        }
        run.check().await;
        assert!(run.succeeded > OPERATIONS / 8, "{} operations did something", run.succeeded);
        run.end().await;
    }
}
