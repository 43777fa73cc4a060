//! The calls of [MS-SRVS] that clients make: the list of shares, information about a share, and
//! about the server.

use super::IPC_SHARE;
use super::ndr::{Reader, Writer};
use super::rpc::Fault;

const SHARE_ENUM: u16 = 15;
const SHARE_GET_INFO: u16 = 16;
const SERVER_GET_INFO: u16 = 21;
const SHARE_ENUM_STICKY: u16 = 36;

const DISK: u32 = 0;
/// A hidden share of named pipes.
const SPECIAL_PIPE: u32 = 0x8000_0003;

const SUCCESS: u32 = 0;
const INVALID_LEVEL: u32 = 124;
const NET_NAME_NOT_FOUND: u32 = 2310;

const PLATFORM_NT: u32 = 500;
/// A workstation and server.
const SERVER_TYPE: u32 = 0x0000_0003;
const UNLIMITED: u32 = u32::MAX;

struct Described<'a> {
    name: &'a str,
    kind: u32,
    remark: &'a str,
}

fn described(name: &str) -> Described<'_> {
    Described { name, kind: DISK, remark: "" }
}

const PIPES: Described<'static> =
    Described { name: IPC_SHARE, kind: SPECIAL_PIPE, remark: "Remote IPC" };

pub fn call(operation: u16, arguments: &[u8], shares: &[String]) -> Result<Vec<u8>, Fault> {
    let mut arguments = Reader::new(arguments);
    match operation {
        SHARE_ENUM | SHARE_ENUM_STICKY => share_enum(&mut arguments, shares),
        SHARE_GET_INFO => share_get_info(&mut arguments, shares),
        SERVER_GET_INFO => server_get_info(&mut arguments),
        _ => Err(Fault::UnknownOperation),
    }
}

fn share_enum(arguments: &mut Reader<'_>, shares: &[String]) -> Result<Vec<u8>, Fault> {
    arguments.optional_string()?;
    let level = arguments.u32()?;
    let mut out = Writer::default();
    out.u32(level);
    out.u32(level);
    if !matches!(level, 0 | 1) {
        out.u32(0);
        out.u32(0);
        out.u32(0);
        out.u32(INVALID_LEVEL);
        return Ok(out.finish());
    }
    let all: Vec<Described<'_>> =
        shares.iter().map(|name| described(name)).chain([PIPES]).collect();
    out.pointer();
    out.u32(all.len() as u32);
    out.pointer();
    out.u32(all.len() as u32);
    for share in &all {
        out.pointer();
        if level == 1 {
            out.u32(share.kind);
            out.pointer();
        }
    }
    for share in &all {
        out.string(share.name);
        if level == 1 {
            out.string(share.remark);
        }
    }
    out.u32(all.len() as u32);
    // No resume handle: the list is complete.
    out.u32(0);
    out.u32(SUCCESS);
    Ok(out.finish())
}

fn share_get_info(arguments: &mut Reader<'_>, shares: &[String]) -> Result<Vec<u8>, Fault> {
    arguments.optional_string()?;
    let name = arguments.string()?;
    let level = arguments.u32()?;
    let mut out = Writer::default();
    out.u32(level);
    let found = shares.iter().map(|share| described(share)).chain([PIPES]);
    let found = found.into_iter().find(|share| share.name.eq_ignore_ascii_case(&name));
    let Some(share) = found else {
        out.u32(0);
        out.u32(NET_NAME_NOT_FOUND);
        return Ok(out.finish());
    };
    match level {
        0 => {
            out.pointer();
            out.pointer();
            out.string(share.name);
        }
        1 => {
            out.pointer();
            out.pointer();
            out.u32(share.kind);
            out.pointer();
            out.string(share.name);
            out.string(share.remark);
        }
        2 => {
            out.pointer();
            out.pointer();
            out.u32(share.kind);
            out.pointer();
            out.u32(0);
            out.u32(UNLIMITED);
            out.u32(1);
            out.pointer();
            out.u32(0);
            out.string(share.name);
            out.string(share.remark);
            // The path on the server, which is not disclosed but must not be empty.
            out.string("C:\\");
        }
        1005 => {
            out.pointer();
            out.u32(0);
        }
        _ => {
            out.u32(0);
            out.u32(INVALID_LEVEL);
            return Ok(out.finish());
        }
    }
    out.u32(SUCCESS);
    Ok(out.finish())
}

fn server_get_info(arguments: &mut Reader<'_>) -> Result<Vec<u8>, Fault> {
    const NAME: &str = "HOLDFAST";
    arguments.optional_string()?;
    let level = arguments.u32()?;
    let mut out = Writer::default();
    out.u32(level);
    match level {
        100 => {
            out.pointer();
            out.u32(PLATFORM_NT);
            out.pointer();
            out.string(NAME);
        }
        101 => {
            out.pointer();
            out.u32(PLATFORM_NT);
            out.pointer();
            out.u32(10);
            out.u32(0);
            out.u32(SERVER_TYPE);
            out.pointer();
            out.string(NAME);
            out.string("");
        }
        _ => {
            out.u32(0);
            out.u32(INVALID_LEVEL);
            return Ok(out.finish());
        }
    }
    out.u32(SUCCESS);
    Ok(out.finish())
}
