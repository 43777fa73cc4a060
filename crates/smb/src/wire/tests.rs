use bytes::{BufMut as _, Bytes};

use super::create::{Disposition, OplockLevel};
use super::create_context::{Lease, LeaseV2, RequestContexts};
use super::header::{Flags, TreeOrAsync};
use super::*;
use crate::fuzz::decode_request;

fn header(command: Command) -> Vec<u8> {
    let mut out = Vec::new();
    Header {
        credit_charge: 1,
        status: 0,
        command: command as u16,
        credits: 31,
        flags: Flags::default(),
        next_command: 0,
        message_id: 7,
        tree_or_async: TreeOrAsync::Tree(5),
        session_id: 9,
        signature: [3; 16],
    }
    .encode(&mut out);
    out
}

const ID: FileId = FileId { persistent: 1, volatile: 2 };

fn create() -> Bytes {
    let mut out = header(Command::Create);
    let name = text::encode("folder\\näme.txt");
    let name_offset = HEADER_BYTES + 56;
    let contexts_offset = (name_offset + name.len()).next_multiple_of(8);
    out.put_u16_le(57);
    out.put_u8(0);
    out.put_u8(0xFF);
    out.put_u32_le(2);
    out.put_u64_le(0);
    out.put_u64_le(0);
    out.put_u32_le(create::access::READ_DATA);
    out.put_u32_le(0x80);
    out.put_u32_le(create::share::READ);
    out.put_u32_le(Disposition::OpenIf as u32);
    out.put_u32_le(create::options::NON_DIRECTORY_FILE);
    out.put_u16_le(name_offset as u16);
    out.put_u16_le(name.len() as u16);
    out.put_u32_le(contexts_offset as u32);
    let mut contexts = Vec::new();
    let mut lease = vec![8; 16];
    lease.put_u32_le(7);
    lease.put_u32_le(0);
    lease.put_u64_le(0);
    lease.extend_from_slice(&[4; 16]);
    lease.put_u16_le(3);
    lease.put_u16_le(0);
    for (name, data, is_last) in [
        (b"MxAc", &[][..], false),
        (b"Hmm?", &[1, 2, 3], false),
        (b"RqLs", &lease, false),
        (b"AlSi", &[0, 1, 0, 0, 0, 0, 0, 0], true),
    ] {
        let start = contexts.len();
        let length = (24 + data.len()).next_multiple_of(8);
        contexts.put_u32_le(if is_last { 0 } else { length as u32 });
        contexts.put_u16_le(16);
        contexts.put_u16_le(4);
        contexts.put_u16_le(0);
        contexts.put_u16_le(if data.is_empty() { 0 } else { 24 });
        contexts.put_u32_le(data.len() as u32);
        contexts.extend_from_slice(name);
        contexts.put_u32_le(0);
        contexts.extend_from_slice(data);
        pad(&mut contexts, start, 8);
    }
    out.put_u32_le(contexts.len() as u32);
    out.extend_from_slice(&name);
    pad(&mut out, 0, 8);
    out.extend_from_slice(&contexts);
    out.into()
}

fn negotiate() -> Bytes {
    let mut out = header(Command::Negotiate);
    out.put_u16_le(36);
    out.put_u16_le(2);
    out.put_u16_le(1);
    out.put_u16_le(0);
    out.put_u32_le(negotiate::capabilities::LEASING);
    out.extend_from_slice(&[6; 16]);
    out.put_u32_le(104);
    out.put_u16_le(3);
    out.put_u16_le(0);
    out.put_u16_le(0x0302);
    out.put_u16_le(0x0311);
    pad(&mut out, 0, 8);
    for (kind, data) in
        [(1, &[1, 0, 4, 0, 1, 0, 9, 9, 9, 9][..]), (2, &[2, 0, 2, 0, 1, 0]), (8, &[1, 0, 2, 0])]
    {
        pad(&mut out, 0, 8);
        out.put_u16_le(kind);
        out.put_u16_le(data.len() as u16);
        out.put_u32_le(0);
        out.extend_from_slice(data);
    }
    out.into()
}

fn session_setup() -> Bytes {
    let mut out = header(Command::SessionSetup);
    out.put_u16_le(25);
    out.put_u8(0);
    out.put_u8(1);
    out.put_u32_le(0);
    out.put_u32_le(0);
    out.put_u16_le(88);
    out.put_u16_le(5);
    out.put_u64_le(77);
    out.extend_from_slice(b"token");
    out.into()
}

fn tree_connect() -> Bytes {
    let mut out = header(Command::TreeConnect);
    let path = text::encode("\\\\host\\share");
    out.put_u16_le(9);
    out.put_u16_le(0);
    out.put_u16_le(72);
    out.put_u16_le(path.len() as u16);
    out.extend_from_slice(&path);
    out.into()
}

fn write() -> Bytes {
    let mut out = header(Command::Write);
    out.put_u16_le(49);
    out.put_u16_le(112);
    out.put_u32_le(6);
    out.put_u64_le(1 << 40);
    ID.encode(&mut out);
    out.put_u32_le(0);
    out.put_u64_le(0);
    out.put_u32_le(write::WRITE_THROUGH);
    out.extend_from_slice(b"abcdef");
    out.into()
}

fn lock() -> Bytes {
    let mut out = header(Command::Lock);
    out.put_u16_le(48);
    out.put_u16_le(2);
    out.put_u32_le(0x11);
    ID.encode(&mut out);
    for offset in [0, 100] {
        out.put_u64_le(offset);
        out.put_u64_le(10);
        out.put_u32_le(lock::EXCLUSIVE);
        out.put_u32_le(0);
    }
    out.into()
}

fn ioctl() -> Bytes {
    let mut out = header(Command::Ioctl);
    out.put_u16_le(57);
    out.put_u16_le(0);
    out.put_u32_le(ioctl::codes::PIPE_TRANSCEIVE);
    ID.encode(&mut out);
    out.put_u32_le(120);
    out.put_u32_le(3);
    out.put_u32_le(0);
    out.put_u64_le(0);
    out.put_u32_le(1024);
    out.put_u32_le(1);
    out.put_u32_le(0);
    out.extend_from_slice(b"rpc");
    out.into()
}

fn query_directory() -> Bytes {
    let mut out = header(Command::QueryDirectory);
    out.put_u16_le(33);
    out.put_u8(37);
    out.put_u8(query_directory::RESTART_SCANS);
    out.put_u32_le(0);
    ID.encode(&mut out);
    out.put_u16_le(96);
    out.put_u16_le(2);
    out.put_u32_le(65536);
    text::append("*", &mut out);
    out.into()
}

fn query_info() -> Bytes {
    let mut out = header(Command::QueryInfo);
    out.put_u16_le(41);
    out.put_u8(query_info::kind::FILE);
    out.put_u8(18);
    out.put_u32_le(1000);
    out.put_u16_le(104);
    out.put_u16_le(0);
    out.put_u32_le(4);
    out.put_u32_le(0);
    out.put_u32_le(0);
    ID.encode(&mut out);
    out.extend_from_slice(&[1, 2, 3, 4]);
    out.into()
}

fn set_info() -> Bytes {
    let mut out = header(Command::SetInfo);
    out.put_u16_le(33);
    out.put_u8(query_info::kind::FILE);
    out.put_u8(20);
    out.put_u32_le(8);
    out.put_u16_le(96);
    out.put_u16_le(0);
    out.put_u32_le(0);
    ID.encode(&mut out);
    out.put_u64_le(4096);
    out.into()
}

fn read() -> Bytes {
    let mut out = header(Command::Read);
    out.put_u16_le(49);
    out.put_u8(80);
    out.put_u8(0);
    out.put_u32_le(8 << 20);
    out.put_u64_le(3);
    ID.encode(&mut out);
    out.put_u32_le(1);
    out.put_u32_le(0);
    out.put_u64_le(0);
    out.into()
}

fn lease_acknowledgement() -> Bytes {
    let mut out = header(Command::OplockBreak);
    out.put_u16_le(36);
    out.put_u16_le(0);
    out.put_u32_le(0);
    out.extend_from_slice(&[5; 16]);
    out.put_u32_le(1);
    out.put_u64_le(0);
    out.into()
}

#[test]
fn a_header_is_read_as_it_is_written() {
    let bytes = header(Command::Lock);
    let decoded = Header::decode(&bytes).expect("a header");
    assert_eq!(decoded.known_command(), Some(Command::Lock));
    assert_eq!((decoded.message_id, decoded.session_id, decoded.tree_id()), (7, 9, 5));
    let pending =
        Header { flags: Flags::ASYNC, tree_or_async: TreeOrAsync::Async(u64::MAX), ..decoded };
    let mut again = Vec::new();
    pending.encode(&mut again);
    assert_eq!(Header::decode(&again), Ok(pending));
    assert_eq!(pending.tree_id(), 0);
}

#[test]
fn a_create_is_read_with_its_contexts_and_unknown_ones_are_ignored() {
    let request = create::Request::decode(&create()).expect("a create");
    assert_eq!(request.name, "folder\\näme.txt");
    assert_eq!(request.disposition, Some(Disposition::OpenIf));
    assert_eq!(request.oplock_level, OplockLevel::Lease);
    let v2 = Some(LeaseV2 { parent_key: [4; 16], epoch: 3 });
    let expected = RequestContexts {
        maximal_access: true,
        allocation_size: Some(256),
        lease: Some(Lease { key: [8; 16], state: 7, flags: 0, v2 }),
        ..RequestContexts::default()
    };
    assert_eq!(request.contexts, expected);
}

#[test]
fn what_is_negotiated_is_read_with_its_contexts() {
    let request = negotiate::Request::decode(&negotiate()).expect("a negotiate");
    assert_eq!(request.dialects, [0x0302, 0x0311]);
    assert_eq!(request.contexts.preauth_hashes, Some(vec![1]));
    assert_eq!(request.contexts.ciphers, Some(vec![2, 1]));
    assert_eq!(request.contexts.signing, Some(vec![2]));
}

#[test]
fn variable_parts_are_slices_of_the_message() {
    let message = write();
    let request = write::Request::decode(&message).expect("a write");
    assert_eq!((&request.data[..], request.offset), (&b"abcdef"[..], 1 << 40));
    assert_eq!(request.data.as_ptr(), message[112..].as_ptr());
    let setup = session_setup::Request::decode(&session_setup()).expect("a session setup");
    assert_eq!((&setup.security_token[..], setup.previous_session_id), (&b"token"[..], 77));
    let tree = tree::Request::decode(&tree_connect()).expect("a tree connect");
    assert_eq!(tree.share(), "share");
    let locks = lock::Request::decode(&lock()).expect("a lock");
    assert_eq!(locks.elements.len(), 2);
    assert_eq!(&ioctl::Request::decode(&ioctl()).expect("an ioctl").input[..], b"rpc");
    let query = query_directory::Request::decode(&query_directory()).expect("a query");
    assert_eq!(query.pattern, "*");
    assert_eq!(set_info::Request::decode(&set_info()).expect("a set").data.len(), 8);
    assert_eq!(query_info::Request::decode(&query_info()).expect("a query").input.len(), 4);
    assert_eq!(read::Request::decode(&read()).expect("a read").length, 8 << 20);
    assert_eq!(
        oplock_break::Acknowledgement::decode(&lease_acknowledgement()),
        Ok(oplock_break::Acknowledgement::Lease { key: [5; 16], state: 1 })
    );
}

/// One of each kind.
pub fn all_requests() -> Vec<Bytes> {
    vec![
        negotiate(),
        session_setup(),
        tree_connect(),
        create(),
        read(),
        write(),
        lock(),
        ioctl(),
        query_directory(),
        query_info(),
        set_info(),
        lease_acknowledgement(),
    ]
}

/// Decodes as the command in the header.
fn decodes(message: &Bytes) -> bool {
    let Ok(header) = Header::decode(message) else { return false };
    decode_request(header.known_command().expect("a command of the tests"), message)
}

#[test]
fn a_message_cut_off_anywhere_is_refused() {
    for message in all_requests() {
        assert!(decodes(&message));
        for length in 0..message.len() {
            assert!(!decodes(&message.slice(..length)), "{length} of {message:?}");
        }
    }
}

#[test]
fn offsets_and_lengths_that_lead_out_of_the_message_are_refused() {
    for (message, field) in [
        (write(), 66),
        (write(), 68),
        (session_setup(), 78),
        (tree_connect(), 70),
        (create(), 110),
        (create(), 112),
        (create(), 116),
        (lock(), 66),
        (ioctl(), 88),
        (ioctl(), 92),
        (query_directory(), 90),
        (set_info(), 68),
        (negotiate(), 66),
        (negotiate(), 92),
        (negotiate(), 96),
    ] {
        let mut broken = message.to_vec();
        broken[field..field + 2].fill(0xFF);
        assert!(!decodes(&broken.into()), "field {field} of {message:?}");
    }
}

#[test]
fn a_part_that_lies_in_the_header_is_refused() {
    let mut message = write().to_vec();
    message[66..68].copy_from_slice(&64u16.to_le_bytes());
    assert_eq!(write::Request::decode(&message.into()), Err(Malformed));
}

#[test]
fn changes_are_chained_by_their_distance() {
    let changes = change_notify::encode_changes([(1, "a"), (2, "bc")].into_iter());
    assert_eq!(changes[..4], 16u32.to_le_bytes());
    assert_eq!(changes[16..20], 0u32.to_le_bytes());
    assert_eq!(changes.len(), 16 + 12 + 4);
}
