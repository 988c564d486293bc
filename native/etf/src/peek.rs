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
    let name = pid.strip_prefix(&[tag::VERSION, tag::NEW_PID])?;
    let (text, rest) = match *name {
        [tag::SMALL_ATOM_UTF8 | tag::SMALL_ATOM, len, ref rest @ ..] => {
            rest.split_at_checked(usize::from(len))?
        }
        [tag::ATOM_UTF8 | tag::ATOM, a, b, ref rest @ ..] => {
            rest.split_at_checked(usize::from(u16::from_be_bytes([a, b])))?
        }
        _ => return None,
    };
    let creation = rest.get(8..12)?.try_into().ok()?;
    Some(NodeId {
        name: text.to_vec(),
        creation: u32::from_be_bytes(creation),
    })
}

#[cfg(test)]
mod tests {
    use super::{callee, node_of_pid};

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
