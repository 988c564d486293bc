//! The opening handshake: what a client asks for, and our answer.
//!
//! Knows nothing of Python.

use super::deflate::{self, Terms};
use crate::http::head::Head;

/// What a client asked for.
pub struct Asked {
    /// `sec-websocket-accept`
    accept: String,
    pub subprotocols: Vec<String>,
    pub terms: Option<Terms>,
}

const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What the client asks for; `Err` has the status to refuse it with.
pub fn read(head: &Head<'_>, may_pack: bool) -> Result<Asked, u16> {
    let values = |name: &'static str| {
        let own = move |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
        head.headers.iter().filter(own).map(|header| header.value)
    };
    // Each by itself: one that is no text hides none of those beside it.
    let words = |name| {
        let all = values(name).flat_map(|value| value.split(|byte| *byte == b','));
        all.filter_map(|word| Some(std::str::from_utf8(word).ok()?.trim()))
    };
    let only = |name| {
        let mut values = values(name);
        let value = values.next().filter(|_| values.next().is_none())?;
        Some(std::str::from_utf8(value).ok()?.trim())
    };
    if only("sec-websocket-version") != Some("13") {
        return Err(426);
    }
    let key = only("sec-websocket-key")
        .filter(|key| is_key(key))
        .ok_or(400u16)?;
    let subprotocols = words("sec-websocket-protocol").filter(|name| !name.is_empty());
    let terms = words("sec-websocket-extensions").find_map(deflate::agree);
    Ok(Asked {
        accept: base64(&digest(key)),
        subprotocols: subprotocols.map(str::to_owned).collect(),
        terms: terms.filter(|_| may_pack),
    })
}

impl Asked {
    /// The lines of the answer that only we can know.
    pub fn answer(&self) -> String {
        let mut text = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
             sec-websocket-accept: {}\r\n",
            self.accept
        );
        if let Some(terms) = &self.terms {
            let terms = terms.answer();
            text.push_str(&format!("sec-websocket-extensions: {terms}\r\n"));
        }
        text
    }
}

/// Sixteen bytes in base64.
fn is_key(key: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    key.len() == 24 && key.ends_with("==") && key.bytes().take(22).all(known)
}

fn digest(key: &str) -> [u8; 20] {
    let mut sha1 = sha1_smol::Sha1::new();
    sha1.update(key.as_bytes());
    sha1.update(MAGIC);
    sha1.digest().bytes()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() {
                letter as char
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_rfc_has_the_answer_of_the_rfc() {
        assert!(is_key("dGhlIHNhbXBsZSBub25jZQ=="));
        let accept = base64(&digest("dGhlIHNhbXBsZSBub25jZQ=="));
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!is_key("dGhlIHNhbXBsZSBub25jZQ="));
    }
}
