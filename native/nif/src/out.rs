//! The few words of External Term Format that this crate writes by itself.

pub fn write_tuple(out: &mut Vec<u8>, arity: u8) {
    out.extend_from_slice(&[104, arity]);
}

/// An atom of at most 255 bytes: only names from tables of ours.
pub fn write_atom(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(&[119, name.len() as u8]);
    out.extend_from_slice(name.as_bytes());
}

pub fn write_binary(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(109);
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

pub fn write_int(out: &mut Vec<u8>, value: i64) {
    match (u8::try_from(value), i32::try_from(value)) {
        (Ok(small), _) => out.extend_from_slice(&[97, small]),
        (_, Ok(value)) => {
            out.push(98);
            out.extend_from_slice(&value.to_be_bytes());
        }
        _ => {
            out.extend_from_slice(&[110, 8, u8::from(value < 0)]);
            out.extend_from_slice(&value.unsigned_abs().to_le_bytes());
        }
    }
}

/// Before the items; `write_nil` comes after them.
pub fn write_list_header(out: &mut Vec<u8>, count: usize) {
    out.push(108);
    out.extend_from_slice(&(count as u32).to_be_bytes());
}

/// Before the pairs.
pub fn write_map_header(out: &mut Vec<u8>, count: u32) {
    out.push(116);
    out.extend_from_slice(&count.to_be_bytes());
}

pub fn write_nil(out: &mut Vec<u8>) {
    out.push(106);
}

pub const EMPTY_MAP: [u8; 5] = [116, 0, 0, 0, 0];

/// The node in an encoded pid: `131, 88, Atom, Id:32, Serial:32, Creation:32`.
pub fn node_of_pid(bytes: &[u8]) -> Option<etf::NodeId> {
    let (tag, rest) = bytes.strip_prefix(&[131, 88])?.split_first()?;
    let (len, rest) = match tag {
        119 | 115 => (usize::from(*rest.first()?), rest.get(1..)?),
        118 | 100 => {
            let len = u16::from_be_bytes(rest.get(..2)?.try_into().ok()?);
            (usize::from(len), rest.get(2..)?)
        }
        _ => return None,
    };
    let creation = rest.get(len + 8..len + 12)?.try_into().ok()?;
    Some(etf::NodeId {
        name: rest.get(..len)?.to_vec(),
        creation: u32::from_be_bytes(creation),
    })
}
