//! Which CREATE requests are invalid in themselves, [MS-SMB2] 3.3.5.9 and [MS-FSA] 2.1.5.1.

use crate::info::facts::attributes;
use crate::status::Status;
use crate::wire::create::{Disposition, Request, access, options};

const IMPERSONATION_MAX: u32 = 3;
const SHARE_ALL: u32 = 7;
const OPTIONS_RESERVED: u32 = 0xFF00_0000;
const OPTIONS_UNSUPPORTED: u32 =
    options::CREATE_TREE_CONNECTION | options::OPEN_BY_FILE_ID | options::RESERVE_OPFILTER;
/// Bits that no right has.
const ACCESS_RESERVED: u32 = 0x0CE0_FE00;
/// Bits that no attribute has, and that of a volume.
const ATTRIBUTES_RESERVED: u32 = 0xFFF0_8048;
const TEMPORARY: u32 = 0x100;

pub fn check(request: &Request) -> Result<(), Status> {
    if request.impersonation_level > IMPERSONATION_MAX {
        return Err(Status::BAD_IMPERSONATION_LEVEL);
    }
    check_options(request)?;
    if request.share_access & !SHARE_ALL != 0 || request.file_attributes & ATTRIBUTES_RESERVED != 0
    {
        return Err(Status::INVALID_PARAMETER);
    }
    if request.desired_access == 0 || request.desired_access & ACCESS_RESERVED != 0 {
        return Err(Status::ACCESS_DENIED);
    }
    if request.file_attributes & attributes::ENCRYPTED != 0 {
        return Err(Status::ACCESS_DENIED);
    }
    if request.contexts.extended_attributes {
        return Err(Status::EAS_NOT_SUPPORTED);
    }
    Ok(())
}

fn check_options(request: &Request) -> Result<(), Status> {
    let has = |option: u32| request.options & option != 0;
    if has(OPTIONS_RESERVED) {
        return Err(Status::INVALID_PARAMETER);
    }
    if has(OPTIONS_UNSUPPORTED) {
        return Err(Status::NOT_SUPPORTED);
    }
    let disposition = request.disposition.ok_or(Status::INVALID_PARAMETER)?;
    let replaces = match disposition {
        Disposition::Supersede | Disposition::Overwrite | Disposition::OverwriteIf => true,
        Disposition::Open | Disposition::Create | Disposition::OpenIf => false,
    };
    let is_directory = has(options::DIRECTORY_FILE);
    if is_directory && (has(options::NON_DIRECTORY_FILE) || replaces) {
        return Err(Status::INVALID_PARAMETER);
    }
    // Directories cannot be temporary.
    let creates = disposition != Disposition::Open;
    if is_directory && creates && request.file_attributes & TEMPORARY != 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    let may_delete = access::DELETE | access::GENERIC_ALL | access::MAXIMUM_ALLOWED;
    if has(options::DELETE_ON_CLOSE) && request.desired_access & may_delete == 0 {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(())
}

/// The mode of reads and writes of an open, as clients see it.
pub fn mode(create_options: u32) -> u32 {
    create_options
        & (options::WRITE_THROUGH
            | options::SEQUENTIAL_ONLY
            | options::NO_INTERMEDIATE_BUFFERING
            | options::SYNCHRONOUS_IO_ALERT
            | options::SYNCHRONOUS_IO_NONALERT
            | options::DELETE_ON_CLOSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::create::OplockLevel;
    use crate::wire::create_context::RequestContexts;

    fn request() -> Request {
        Request {
            oplock_level: OplockLevel::None,
            impersonation_level: 2,
            desired_access: access::READ_DATA,
            file_attributes: 0x20,
            share_access: 7,
            disposition: Some(Disposition::OpenIf),
            options: 0,
            name: "a".to_owned(),
            contexts: RequestContexts::default(),
        }
    }

    fn refusal(change: impl FnOnce(&mut Request)) -> Option<Status> {
        let mut request = request();
        change(&mut request);
        check(&request).err()
    }

    #[test]
    fn requests_that_contradict_themselves_are_refused() {
        let invalid = Some(Status::INVALID_PARAMETER);
        assert_eq!(refusal(|_| ()), None);
        assert_eq!(refusal(|request| request.share_access = 8), invalid);
        assert_eq!(refusal(|request| request.file_attributes = 0x8), invalid);
        assert_eq!(refusal(|request| request.options = 0x0100_0000), invalid);
        assert_eq!(refusal(|request| request.options = 0x41), invalid);
        assert_eq!(refusal(|request| request.options = options::DELETE_ON_CLOSE), invalid);
        for disposition in
            [Disposition::Supersede, Disposition::Overwrite, Disposition::OverwriteIf]
        {
            let change = |request: &mut Request| {
                request.options = options::DIRECTORY_FILE;
                request.disposition = Some(disposition);
            };
            assert_eq!(refusal(change), invalid, "{disposition:?}");
        }
        assert_eq!(refusal(|request| request.disposition = None), invalid);
        let temporary = |request: &mut Request| {
            request.options = options::DIRECTORY_FILE;
            request.file_attributes = TEMPORARY;
        };
        assert_eq!(refusal(temporary), invalid);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let denied = Some(Status::ACCESS_DENIED);
        let level = Some(Status::BAD_IMPERSONATION_LEVEL);
        assert_eq!(refusal(|request| request.impersonation_level = 4), level);
        assert_eq!(refusal(|request| request.options = 0x2000), Some(Status::NOT_SUPPORTED));
        assert_eq!(refusal(|request| request.desired_access = 0), denied);
        assert_eq!(refusal(|request| request.desired_access = 0x0800_0001), denied);
        assert_eq!(refusal(|request| request.file_attributes = 0x4000), denied);
        let with_attributes = |request: &mut Request| request.contexts.extended_attributes = true;
        assert_eq!(refusal(with_attributes), Some(Status::EAS_NOT_SUPPORTED));
    }
}
