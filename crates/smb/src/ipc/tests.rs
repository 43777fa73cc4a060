use bytes::BufMut as _;

use super::ndr::Writer;
use super::*;

fn pdu(kind: u8, flags: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![5, 0, kind, flags, 0x10, 0, 0, 0];
    out.put_u16_le((16 + body.len()) as u16);
    out.put_u16_le(0);
    out.put_u32_le(7);
    out.extend_from_slice(body);
    out
}

fn bind() -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u16_le(4280);
    body.put_u16_le(4280);
    body.put_u32_le(0);
    body.put_u32_le(1);
    body.put_u16_le(0);
    body.put_u16_le(1);
    body.extend(crate::hexadecimal("c84f324b7016d30112785a47bf6ee18803000000"));
    body.extend(crate::hexadecimal("045d888aeb1cc9119fe808002b10486002000000"));
    pdu(11, 3, &body)
}

fn request(operation: u16, arguments: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u32_le(0);
    body.put_u16_le(0);
    body.put_u16_le(operation);
    body.extend_from_slice(arguments);
    pdu(0, 3, &body)
}

fn share_enum() -> Vec<u8> {
    let mut arguments = Writer::default();
    arguments.pointer();
    arguments.string("\\\\host");
    for value in [1, 1, 4, 0, 0, u32::MAX, 0] {
        arguments.u32(value);
    }
    request(15, &arguments.finish())
}

fn bound() -> Pipe {
    let mut pipe = Pipe::open("\\SrvSvc", &Pipes::default()).expect("the pipe");
    assert!(pipe.receive(&bind()).expect("a bind").is_empty());
    let (answer, is_all) = pipe.read(4280);
    assert!(is_all);
    assert_eq!((answer[2], answer[answer.len() - 24..][..2].to_vec()), (12, vec![0, 0]));
    pipe
}

#[test]
fn there_is_one_pipe() {
    assert!(Pipe::open("srvsvc", &Pipes::default()).is_some());
    assert!(Pipe::open("lsarpc", &Pipes::default()).is_none());
}

#[test]
fn a_call_may_come_in_pieces_and_its_answer_is_read_in_pieces() {
    let mut pipe = bound();
    let call = share_enum();
    let (left, right) = call.split_at(21);
    assert!(pipe.receive(left).expect("a part").is_empty());
    let requests = pipe.receive(right).expect("the rest");
    assert_eq!(requests.len(), 1);
    let shares: Vec<String> = (0..500).map(|number| format!("share{number}")).collect();
    pipe.answer(&requests[0], &shares).expect("there is room");
    let (first, is_all) = pipe.read(1000);
    assert_eq!((first.len(), first[3], is_all), (1000, 1, false));
    let mut last_flags = 0;
    loop {
        let (message, is_all) = pipe.read(4280);
        if message.is_empty() {
            break;
        }
        assert!(is_all);
        last_flags = if message[0] == 5 { message[3] } else { last_flags };
    }
    assert_eq!(last_flags, 2);
}

#[test]
fn answers_that_nobody_reads_are_bounded_for_all_pipes_of_a_connection() {
    let shares: Vec<String> = (0..500).map(|number| format!("share{number}")).collect();
    let pipes = Pipes::default();
    let held = || pipes.held.load(Ordering::Relaxed);
    let mut open: Vec<Pipe> =
        (0..3).map(|_| Pipe::open("srvsvc", &pipes).expect("the pipe")).collect();
    for pipe in &mut open {
        assert!(pipe.receive(&bind()).expect("a bind").is_empty());
    }
    let calls = share_enum().repeat(200);
    let requests = open[0].receive(&calls).expect("calls");
    let answered = requests.iter().take_while(|call| open[0].answer(call, &shares).is_ok()).count();
    assert!((1..200).contains(&answered), "{answered}");
    assert!((HELD_BYTES_MAX..HELD_BYTES_MAX + 64 * 1024).contains(&held()), "{}", held());
    assert_eq!(open[1].receive(&share_enum()).err(), Some(Status::INSUFFICIENT_RESOURCES));
    // Reading frees room for the others, and so does closing a pipe.
    while !open[0].read(4280).0.is_empty() {}
    let requests = open[1].receive(&share_enum()).expect("there is room");
    open[1].answer(&requests[0], &shares).expect("there is room");
    assert!(open[2].receive(&share_enum()[..30]).expect("a part").is_empty());
    assert!(held() > 30);
    open.clear();
    assert_eq!(held(), 0);
}

#[test]
fn what_is_no_call_is_refused_and_never_panics() {
    for bytes in [bind(), share_enum()] {
        for length in 16..bytes.len() {
            let mut pipe = Pipe::default();
            let mut cut = bytes[..length].to_vec();
            cut[8..10].copy_from_slice(&(length as u16).to_le_bytes());
            let _ = pipe.receive(&cut);
        }
    }
    let call = share_enum();
    for length in 0..call.len() - 24 {
        let _ = srvsvc::call(15, &call[24..24 + length], &[]);
        let _ = srvsvc::call(16, &call[24..24 + length], &[]);
        let _ = srvsvc::call(21, &call[24..24 + length], &[]);
    }
    assert_eq!(srvsvc::call(99, &[], &[]), Err(rpc::Fault::UnknownOperation));
}
