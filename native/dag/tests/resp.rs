//! The decoder against the codec crate `redis-protocol`, cut at every byte, and hostile input.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use dag::redis::resp::{Decoder, encode};
use dag::redis::{Failure, Reply};
use proptest::prelude::*;
use redis_protocol::resp3::types::{OwnedFrame, Resp3Frame};

fn all(bytes: &[u8]) -> Result<Vec<Reply>, Failure> {
    pieces(&[bytes])
}

/// Decodes what comes in pieces, as a connection does.
fn pieces(parts: &[&[u8]]) -> Result<Vec<Reply>, Failure> {
    let mut decoder = Decoder::default();
    let mut input = Vec::new();
    let mut replies = Vec::new();
    for part in parts {
        input.extend_from_slice(part);
        let mut at = 0;
        while at < input.len() {
            match decoder.decode(&input, &mut at)? {
                Some(reply) => replies.push(reply),
                None => break,
            }
        }
        input.drain(..at);
    }
    Ok(replies)
}

const SAMPLE: &[u8] = b"+OK\r\n-ERR no\r\n:-42\r\n$5\r\nhel\r\n\r\n$-1\r\n*-1\r\n*0\r\n_\r\n#t\r\n,1.5\r\n\
    (123456789012345678901\r\n=7\r\ntxt:abc\r\n%1\r\n+k\r\n*2\r\n:1\r\n$0\r\n\r\n~1\r\n:7\r\n|1\r\n+a\r\n+b\r\n:9\r\n\
    >2\r\n+message\r\n+x\r\n!5\r\nERR x\r\n";

#[test]
fn every_type_of_both_versions_is_read() {
    let text = |text: &str| Reply::Simple(text.to_owned());
    let expected = vec![
        text("OK"),
        Reply::Error("ERR no".to_owned()),
        Reply::Int(-42),
        Reply::Bytes(b"hel\r\n".to_vec()),
        Reply::Nil,
        Reply::Nil,
        Reply::Array(vec![]),
        Reply::Nil,
        Reply::Bool(true),
        Reply::Double(1.5),
        Reply::BigNumber("123456789012345678901".to_owned()),
        Reply::Bytes(b"abc".to_vec()),
        Reply::Map(vec![(
            text("k"),
            Reply::Array(vec![Reply::Int(1), Reply::Bytes(vec![])]),
        )]),
        Reply::Set(vec![Reply::Int(7)]),
        Reply::Int(9),
        Reply::Push(vec![text("message"), text("x")]),
        Reply::Error("ERR x".to_owned()),
    ];
    assert_eq!(all(SAMPLE).unwrap(), expected);
}

#[test]
fn replies_cut_at_every_byte_are_the_same_replies() {
    let whole = all(SAMPLE).unwrap();
    for cut in 0..SAMPLE.len() {
        let (a, b) = SAMPLE.split_at(cut);
        assert_eq!(pieces(&[a, b]).unwrap(), whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = SAMPLE.chunks(1).collect();
    assert_eq!(pieces(&single).unwrap(), whole);
}

#[test]
fn what_is_not_the_protocol_is_refused() {
    let deep = b"*1\r\n".repeat(1000);
    let bad: [&[u8]; 8] = [
        b"hello\r\n",
        b"\r\n",
        b":12a\r\n",
        b"$-2\r\n",
        b"$3\r\nabcde",
        b"*-5\r\n",
        b":99999999999999999999\r\n",
        &deep,
    ];
    for bytes in bad {
        assert!(matches!(all(bytes), Err(Failure::Protocol(_))), "{bytes:?}");
    }
    // A hostile length reserves nothing.
    assert_eq!(all(b"*9000000000000000000\r\n"), Ok(vec![]));
}

#[test]
fn a_command_is_an_array_of_strings() {
    let mut out = Vec::new();
    encode(&mut out, &[&b"SET"[..], b"", b"a\r\nb"]);
    assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n");
}

fn frame() -> impl Strategy<Value = OwnedFrame> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..20);
    let leaf = prop_oneof![
        bytes.prop_map(|data| OwnedFrame::BlobString {
            data,
            attributes: None
        }),
        any::<i64>().prop_map(|data| OwnedFrame::Number {
            data,
            attributes: None
        }),
        any::<bool>().prop_map(|data| OwnedFrame::Boolean {
            data,
            attributes: None
        }),
        "[a-z ]{0,12}".prop_map(|data| OwnedFrame::SimpleError {
            data,
            attributes: None
        }),
        Just(OwnedFrame::Null),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let items = proptest::collection::vec(inner, 0..6);
        items.prop_map(|data| OwnedFrame::Array {
            data,
            attributes: None,
        })
    })
}

fn same(frame: &OwnedFrame) -> Reply {
    match frame {
        OwnedFrame::BlobString { data, .. } => Reply::Bytes(data.clone()),
        OwnedFrame::Number { data, .. } => Reply::Int(*data),
        OwnedFrame::Boolean { data, .. } => Reply::Bool(*data),
        OwnedFrame::SimpleError { data, .. } => Reply::Error(data.clone()),
        OwnedFrame::Array { data, .. } => Reply::Array(data.iter().map(same).collect()),
        _ => Reply::Nil,
    }
}

proptest! {
    #[test]
    fn what_the_codec_crate_writes_is_read_however_it_is_cut(
        frames in proptest::collection::vec(frame(), 1..5),
        cut: proptest::sample::Index,
    ) {
        let mut bytes = Vec::new();
        for frame in &frames {
            let mut one = vec![0; frame.encode_len(false)];
            redis_protocol::resp3::encode::complete::encode(&mut one, frame, false).unwrap();
            bytes.extend(one);
        }
        let (a, b) = bytes.split_at(cut.index(bytes.len()));
        let expected: Vec<_> = frames.iter().map(same).collect();
        prop_assert_eq!(pieces(&[a, b]).unwrap(), expected);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = all(&bytes);
        let mut marked = b"*2\r\n%1\r\n$".to_vec();
        marked.extend(&bytes);
        let _ = all(&marked);
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    for kind in *b"+-:,(*$" {
        let line = [&[kind][..], &b"1".repeat(1 << 20)].concat();
        let parts: Vec<&[u8]> = line.chunks(4096).collect();
        let refused = Failure::Protocol("a line of more than 64 KiB");
        assert_eq!(pieces(&parts), Err(refused), "{}", kind as char);
    }
    let long = [&b"-ERR "[..], &b"x".repeat(60_000), b"\r\n"].concat();
    assert_eq!(all(&long).unwrap().len(), 1);
}

#[test]
fn fuzz_resp() {
    fuzz::fuzz("resp", |data| {
        let whole = all(data);
        let bytes: Vec<&[u8]> = data.chunks(1).collect();
        let threes: Vec<&[u8]> = data.chunks(3).collect();
        // Debug: a number that is none is not equal to itself.
        let shown = format!("{whole:?}");
        assert_eq!(shown, format!("{:?}", pieces(&bytes)));
        assert_eq!(shown, format!("{:?}", pieces(&threes)));
        match whole {
            Ok(replies) => Ok(replies
                .iter()
                .map(std::mem::discriminant)
                .take(6)
                .collect::<Vec<_>>()),
            Err(failure) => Err(failure.to_string()),
        }
    });
}
