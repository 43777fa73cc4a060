//! The operations on directories, files and links.

use std::future::ready;

use super::{
    copy, directory, file_lease, get_file, handles, link, list_entries, list_ranges, range, rename,
    whole,
};
use crate::answer::Answering;
use crate::body::RequestBody;
use crate::error::Code;
use crate::operation::Operation;
use crate::request::Call;

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "most operations belong to other services or are not built; test_support_matrix.py \
              calls all that are"
)]
pub fn operation<'a>(call: &'a Call<'_>, body: RequestBody) -> Answering<'a> {
    match call.operation {
        Operation::CreateDirectory => Box::pin(directory::create(call)),
        Operation::GetDirectoryProperties => Box::pin(directory::get_properties(call)),
        Operation::GetDirectoryMetadata => Box::pin(directory::get_metadata(call)),
        Operation::SetDirectoryProperties => Box::pin(directory::set_properties(call)),
        Operation::SetDirectoryMetadata => Box::pin(directory::set_metadata(call)),
        Operation::DeleteDirectory => Box::pin(directory::delete(call)),
        Operation::ListDirectoriesAndFiles => Box::pin(list_entries::list(call)),
        Operation::CreateFile => Box::pin(whole::create(call, body)),
        Operation::GetFile => Box::pin(get_file::get(call)),
        Operation::GetFileProperties => Box::pin(whole::get_properties(call)),
        Operation::GetFileMetadata => Box::pin(whole::get_metadata(call)),
        Operation::SetFileProperties => Box::pin(whole::set_properties(call)),
        Operation::SetFileMetadata => Box::pin(whole::set_metadata(call)),
        Operation::DeleteFile => Box::pin(whole::delete(call)),
        Operation::PutRange => Box::pin(range::put(call, body)),
        Operation::PutRangeFromUrl => Box::pin(range::put_from_url(call, body)),
        Operation::ListRanges => Box::pin(list_ranges::list(call)),
        Operation::AcquireFileLease
        | Operation::ChangeFileLease
        | Operation::ReleaseFileLease
        | Operation::BreakFileLease => Box::pin(file_lease::lease(call)),
        Operation::CopyFile => Box::pin(copy::copy(call)),
        Operation::AbortCopyFile => Box::pin(copy::abort(call)),
        Operation::RenameFile | Operation::RenameDirectory => Box::pin(rename::rename(call)),
        Operation::CreateSymbolicLink => Box::pin(link::create_symbolic(call)),
        Operation::GetSymbolicLink => Box::pin(link::get_symbolic(call)),
        Operation::CreateHardLink => Box::pin(link::create_hard(call)),
        Operation::ListHandles => Box::pin(handles::list(call)),
        Operation::ForceCloseHandles => Box::pin(handles::force_close(call)),
        _ => Box::pin(ready(Err(Code::NotImplemented.into()))),
    }
}
