//! A file in memory, optionally with a bug.

use std::sync::Arc;
use std::time::Duration;

use holdfast_verify::etag::ETag;
use holdfast_verify::file::{Answer, FileWorkload, Request, SLOTS, Slots};
use holdfast_verify::record::Target;
use tokio::time::sleep;

use super::{Faulty, travel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    /// A range is written slot by slot.
    TornWrite,
    /// Two concurrent writes keep only the slots of one.
    LostRange,
    /// Clearing is acknowledged before it is done.
    LateClear,
}

#[derive(Default)]
pub struct Server {
    file: Option<Slots>,
    etags: u64,
}

pub type FaultyFile = Faulty<Server, Bug>;

impl Target<FileWorkload> for FaultyFile {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        travel(&mut self.random).await;
        let answer = self.serve(request).await;
        travel(&mut self.random).await;
        Some(answer)
    }
}

impl FaultyFile {
    async fn serve(&self, request: &Request) -> Answer {
        let refused = || Answer::Refused { status: 404, code: "ResourceNotFound".to_owned() };
        let pause = || sleep(Duration::from_millis(1));
        match request {
            Request::Create => self.lock().write(Some([0; SLOTS])),
            Request::Get => {
                let server = self.lock();
                let read = |slots| Answer::Read { slots, etag: server.etag() };
                server.file.map_or_else(refused, read)
            }
            Request::Delete => match self.lock().file.take() {
                Some(_) => Answer::Deleted,
                None => refused(),
            },
            Request::Write { slots, value } => {
                let Some(mut before) = self.lock().file else { return refused() };
                if self.bug == Bug::TornWrite {
                    for slot in slots.clone() {
                        let Some(mut file) = self.lock().file else { return refused() };
                        file[slot] = *value;
                        self.lock().write(Some(file));
                        pause().await;
                    }
                    let mut server = self.lock();
                    let file = server.file;
                    return server.write(file);
                }
                if self.bug == Bug::LostRange {
                    pause().await;
                }
                before[slots.clone()].fill(*value);
                self.lock().write(Some(before))
            }
            Request::Clear { slots } => {
                let mut server = self.lock();
                let Some(mut file) = server.file else { return refused() };
                if self.bug == Bug::LateClear {
                    let (later, slots) = (Arc::clone(&self.server), slots.clone());
                    tokio::spawn(async move {
                        sleep(Duration::from_millis(9)).await;
                        let mut server = later.lock().expect("no client panics");
                        if let Some(file) = &mut server.file {
                            file[slots].fill(0);
                        }
                    });
                    return server.write(Some(file));
                }
                file[slots.clone()].fill(0);
                server.write(Some(file))
            }
        }
    }
}

impl Server {
    fn write(&mut self, file: Option<Slots>) -> Answer {
        self.etags += 1;
        self.file = file;
        Answer::Written { etag: self.etag() }
    }

    fn etag(&self) -> Option<ETag> {
        Some(ETag::new(&format!("\"{}\"", self.etags)))
    }
}
