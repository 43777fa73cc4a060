//! An append blob in memory, optionally with a bug.

use std::time::Duration;

use holdfast_verify::append::{Answer, AppendWorkload, PIECE_BYTES, Request, pieces};
use holdfast_verify::etag::{Condition, ETag};
use holdfast_verify::record::Target;
use tokio::time::sleep;

use super::{Faulty, travel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    None,
    PositionNotChecked,
    SizeNotChecked,
    /// Two concurrent blocks get the same place.
    LostAppend,
    /// A read gets half of the last block.
    TornRead,
}

#[derive(Default)]
pub struct Server {
    blob: Option<(Vec<u64>, u64)>,
    etags: u64,
}

pub type FaultyAppend = Faulty<Server, Bug>;

impl Target<AppendWorkload> for FaultyAppend {
    async fn call(&mut self, request: &Request) -> Option<Answer> {
        travel(&mut self.random).await;
        let before = self.lock().blob.clone();
        let is_late = self.bug == Bug::LostAppend && matches!(request, Request::Append { .. });
        if is_late {
            sleep(Duration::from_millis(2)).await;
        }
        let answer = {
            let mut server = self.lock();
            let before = if is_late { before } else { server.blob.clone() };
            server.serve(before, request, self.bug)
        };
        travel(&mut self.random).await;
        Some(answer)
    }
}

impl Server {
    fn serve(&mut self, before: Option<(Vec<u64>, u64)>, request: &Request, bug: Bug) -> Answer {
        let refused = |status, code: &str| Answer::Refused { status, code: code.to_owned() };
        match (request, before) {
            (Request::Create { condition: Condition::Absent }, Some(_)) => {
                refused(409, "BlobAlreadyExists")
            }
            (Request::Create { .. }, _) => {
                self.etags += 1;
                self.blob = Some((Vec::new(), 0));
                Answer::Created { etag: self.etag() }
            }
            (_, None) => refused(404, "BlobNotFound"),
            (Request::Get, Some((mut read, _))) => {
                if bug == Bug::TornRead && read.len() > 3 {
                    read.pop();
                }
                Answer::Read { pieces: read, etag: self.etag() }
            }
            (Request::Append { value, position, size_max }, Some((mut content, blocks))) => {
                let offset = content.len() as u64 * PIECE_BYTES;
                let after = offset + pieces(*value) * PIECE_BYTES;
                let is_elsewhere = position.is_some_and(|position| position != offset);
                if is_elsewhere && bug != Bug::PositionNotChecked {
                    return refused(412, "AppendPositionConditionNotMet");
                }
                if size_max.is_some_and(|it| after > it) && bug != Bug::SizeNotChecked {
                    return refused(412, "MaxBlobSizeConditionNotMet");
                }
                content.extend((0..pieces(*value)).map(|_| *value));
                self.etags += 1;
                self.blob = Some((content, blocks + 1));
                Answer::Appended { offset, blocks: blocks + 1, etag: self.etag() }
            }
        }
    }

    fn etag(&self) -> ETag {
        ETag::new(&format!("\"{}\"", self.etags))
    }
}
