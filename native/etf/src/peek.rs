//! What of a term is read where Python is not at hand.

use crate::host::NodeId;
use crate::tag;

/// The bytes of module and function in an encoded call. A function that is named in two ways, by an atom and by a
/// binary, has two.
pub fn callee(call: &[u8]) -> Option<&[u8]> {
    let names = call.strip_prefix(&[tag::VERSION, tag::SMALL_TUPLE, 4])?;
    let module = name_len(names)?;
    let function = name_len(names.get(module..)?)?;
    names.get(..module + function)
}

/// The length of the atom, binary or string at the begin, with its tag.
fn name_len(bytes: &[u8]) -> Option<usize> {
    Some(match *bytes {
        [tag::SMALL_ATOM_UTF8 | tag::SMALL_ATOM, len, ..] => 2 + usize::from(len),
        [tag::ATOM_UTF8 | tag::ATOM | tag::STRING, a, b, ..] => {
            3 + usize::from(u16::from_be_bytes([a, b]))
        }
        [tag::BINARY, a, b, c, d, ..] => {
            5 + usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?
        }
        _ => return None,
    })
}

/// The node in an encoded pid: its name, eight bytes of the process, four of the node's creation.
pub fn node_of_pid(pid: &[u8]) -> Option<NodeId> {
    let (text, rest) = atom(pid.strip_prefix(&[tag::VERSION, tag::NEW_PID])?)?;
    let creation = rest.get(8..12)?.try_into().ok()?;
    Some(NodeId {
        name: text.to_vec(),
        creation: u32::from_be_bytes(creation),
    })
}

/// Whether it is a pid, an alias or a tuple of two, by the tag of its encoding.
pub fn is_destination(term: &[u8]) -> bool {
    use tag::*;
    matches!(
        term,
        [VERSION, NEW_PID | PID | NEWER_REFERENCE | NEW_REFERENCE, ..]
            | [VERSION, SMALL_TUPLE, 2, ..]
    )
}

/// The name of the node in the encoding of such a destination.
pub fn node_of_destination(term: &[u8]) -> Option<&[u8]> {
    use tag::*;
    let (node, _) = match term {
        [VERSION, NEW_PID | PID, node @ ..] => atom(node)?,
        [VERSION, NEWER_REFERENCE | NEW_REFERENCE, _, _, node @ ..] => atom(node)?,
        [VERSION, SMALL_TUPLE, 2, name @ ..] => atom(atom(name)?.1)?,
        _ => return None,
    };
    Some(node)
}

/// The text of the atom at the begin, and what follows it.
fn atom(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match bytes {
        [tag::SMALL_ATOM_UTF8 | tag::SMALL_ATOM, len, rest @ ..] => {
            rest.split_at_checked(usize::from(*len))
        }
        [tag::ATOM_UTF8 | tag::ATOM, a, b, rest @ ..] => {
            rest.split_at_checked(usize::from(u16::from_be_bytes([*a, *b])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{callee, is_destination, node_of_destination, node_of_pid};

    /// `{math, <<"sqrt">>, [4], #{}}`
    const CALL: &[u8] = b"\x83h\x04w\x04mathm\x00\x00\x00\x04sqrtk\x00\x01\x04t\x00\x00\x00\x00";

    #[test]
    fn the_names_of_a_call_are_the_bytes_before_its_arguments() {
        assert_eq!(callee(CALL), Some(&CALL[3..18]));
        let other_arguments = [&CALL[..18], b"jt\x00\x00\x00\x00"].concat();
        assert_eq!(callee(&other_arguments), callee(CALL));
        assert_eq!(
            callee(b"\x83h\x04d\x00\x01ak\x00\x01bj"),
            Some(&b"d\x00\x01ak\x00\x01b"[..])
        );
    }

    #[test]
    fn what_is_no_call_or_cut_has_no_names() {
        for len in 0..18 {
            assert_eq!(callee(&CALL[..len]), None);
        }
        assert_eq!(callee(b"\x83h\x02w\x04math"), None);
        assert_eq!(callee(b"\x83h\x04a\x04w\x01a"), None);
        assert_eq!(callee(b"\x83h\x04m\xff\xff\xff\xffab"), None);
    }

    #[test]
    fn a_destination_names_its_node() {
        for term in [
            &b"\x83Xw\x03a@b\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04"[..],
            b"\x83Z\0\x03w\x03a@b\x01\x02\x03\x04",
            b"\x83h\x02w\x04namew\x03a@b",
        ] {
            assert!(is_destination(term));
            assert_eq!(node_of_destination(term), Some(&b"a@b"[..]));
        }
        assert!(!is_destination(b"\x83w\x04name"));
        assert_eq!(node_of_destination(b"\x83h\x02a\x01w\x03a@b"), None);
        assert_eq!(node_of_destination(b"\x83w\x04name"), None);
    }

    #[test]
    fn a_pid_names_its_node_in_each_encoding_of_the_atom() {
        let rest = b"\0\0\0\x01\0\0\0\x02\x01\x02\x03\x04";
        for head in [
            &b"\x83Xw\x03a@b"[..],
            b"\x83Xs\x03a@b",
            b"\x83Xv\0\x03a@b",
            b"\x83Xd\0\x03a@b",
        ] {
            let pid = [head, rest].concat();
            let node = node_of_pid(&pid).map(|node| (node.name, node.creation));
            assert_eq!(node, Some((b"a@b".to_vec(), 0x0102_0304)));
            for len in 0..pid.len() {
                assert!(node_of_pid(&pid[..len]).is_none(), "cut after {len} bytes");
            }
        }
        assert!(node_of_pid(b"\x83Zw\x03a@b").is_none());
    }
}
