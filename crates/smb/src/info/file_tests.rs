//! Information classes of files, byte by byte.

use super::*;
use crate::wire::create::Times;

fn open() -> OpenFacts {
    let times = Times { creation: 1, last_access: 2, last_write: 3, change: 4 };
    let node = NodeFacts {
        id: 77,
        is_directory: false,
        attributes: 0x20,
        times,
        end_of_file: 5,
        allocation_size: 4096,
    };
    let path = "a\\b".to_owned();
    let access = 0x001F_01FF;
    OpenFacts { node, path, access, mode: 2, position: 9, delete_pending: false }
}

fn answered(class: u8, open: &OpenFacts) -> Vec<u8> {
    let output = query(class, open, 65_536).expect("answered");
    assert_eq!(output.status, Status::SUCCESS);
    output.bytes
}

#[test]
fn classes_have_the_lengths_that_clients_rely_on() {
    for (class, length) in [
        (class::BASIC, 40),
        (class::STANDARD, 24),
        (class::INTERNAL, 8),
        (class::EA, 4),
        (class::ACCESS, 4),
        (class::POSITION, 8),
        (class::MODE, 4),
        (class::ALIGNMENT, 4),
        (class::COMPRESSION, 16),
        (class::NETWORK_OPEN, 56),
        (class::ATTRIBUTE_TAG, 8),
        (class::FILE_ID, 24),
    ] {
        let open = open();
        assert_eq!(answered(class, &open).len(), length, "{class}");
        let short = query(class, &open, length - 1);
        assert_eq!(short, Err(Status::INFO_LENGTH_MISMATCH), "{class}");
    }
}

#[test]
fn what_has_a_name_in_it_is_cut_if_there_is_too_little_room() {
    let all = answered(class::ALL, &open());
    assert_eq!(all.len(), 100 + 8);
    assert_eq!(all[96..100], [8, 0, 0, 0]);
    assert_eq!(all[100..], text::encode("\\a\\b"));
    let cut = query(class::ALL, &open(), 106).expect("answered");
    assert_eq!((cut.status, cut.bytes.len()), (Status::BUFFER_OVERFLOW, 106));
    assert_eq!(query(class::ALL, &open(), 103), Err(Status::INFO_LENGTH_MISMATCH));
    assert_eq!(answered(class::NORMALIZED_NAME, &open())[4..], text::encode("a\\b"));
}

#[test]
fn a_file_has_one_stream_and_a_directory_none() {
    let mut open = open();
    let stream = answered(class::STREAM, &open);
    assert_eq!(stream.len(), 24 + 14);
    assert_eq!(stream[4], 14);
    open.node.is_directory = true;
    assert!(answered(class::STREAM, &open).is_empty());
}

#[test]
fn a_name_that_is_about_to_go_does_not_count() {
    let mut open = open();
    assert_eq!(answered(class::STANDARD, &open)[16..22], [1, 0, 0, 0, 0, 0]);
    open.delete_pending = true;
    assert_eq!(answered(class::STANDARD, &open)[16..22], [0, 0, 0, 0, 1, 0]);
}

#[test]
fn attributes_are_for_those_who_may_read_them() {
    let blind = OpenFacts { access: 1, ..open() };
    for class in [class::BASIC, class::ALL, class::NETWORK_OPEN, class::ATTRIBUTE_TAG] {
        assert_eq!(query(class, &blind, 1000), Err(Status::ACCESS_DENIED), "{class}");
    }
    assert_eq!(answered(class::INTERNAL, &blind)[0], 77);
    assert_eq!(query(99, &blind, 1000), Err(Status::INVALID_INFO_CLASS));
}
