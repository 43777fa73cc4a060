//! Opens the pipe of `IPC$`.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::answer::Answer;
use crate::call::Call;
use crate::commands::Result;
use crate::info::facts::attributes;
use crate::ipc::Pipe;
use crate::opens::{Open, OpenKind};
use crate::status::Status;
use crate::wire::FileId;
use crate::wire::create::{Action, OplockLevel, Request, Response, Times};

pub fn open(call: &mut Call, request: &Request) -> Result {
    let pipe = Pipe::open(&request.name, &call.connection.pipes);
    let pipe = pipe.ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    let id = call.connection.frontend.next_open_id();
    let file_id = FileId { persistent: id, volatile: id };
    let open = Open::new(
        file_id,
        call.tree()?.id,
        OpenKind::Pipe(Mutex::new(pipe)),
        call.header.channel_sequence(),
    );
    if !call.session()?.opens.insert(Arc::new(open)) {
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    call.chain.file_id = Some(file_id);
    let response = Response {
        oplock_level: OplockLevel::None,
        action: Action::Opened,
        times: Times::default(),
        allocation_size: 4096,
        end_of_file: 0,
        file_attributes: attributes::NORMAL,
        file_id,
        contexts: Vec::new(),
    };
    Ok(Answer::success(|out| response.encode(out)))
}
