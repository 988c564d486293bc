//! A connection that never blocks: plain or TLS, and the ways to leave it.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

use crate::chance::Chance;

pub struct Wire {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    was_open: bool,
}

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
pub enum Leave {
    Close,
    Reset,
    /// It has nothing more to say, and still listens.
    HalfClose,
}

impl Wire {
    pub fn connect(
        port: u16,
        tls: Option<&Arc<ClientConfig>>,
        chance: &mut Chance,
    ) -> io::Result<Wire> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        // From many addresses: the ports of one would be used up by connections that have just ended.
        let from = Ipv4Addr::new(127, 1, chance.below(250) as u8, 1 + chance.below(250) as u8);
        bind(&socket, &SocketAddrV4::new(from, 0))?;
        match connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let tls = match tls {
            Some(config) => {
                let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
                let connection = ClientConnection::new(config.clone(), name);
                Some(Box::new(connection.map_err(io::Error::other)?))
            }
            None => None,
        };
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Wire {
            stream,
            tls,
            was_open: false,
        })
    }

    /// Sends what TLS itself has to say, and what it has taken and could not send.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        while tls.wants_write() {
            match tls.write_tls(&mut self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// As many bytes as are taken now.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.stream.write(bytes);
        };
        let taken = if tls.is_handshaking() {
            0
        } else {
            tls.writer().write(bytes)?
        };
        self.flush()?;
        if taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }

    /// Whether the handshake is over since the last time this was asked: there is room for what waits.
    pub fn is_open_now(&mut self) -> bool {
        let open = self.tls.as_ref().is_some_and(|tls| !tls.is_handshaking());
        open && !std::mem::replace(&mut self.was_open, true)
    }

    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.stream.read(room);
        };
        loop {
            match tls.reader().read(room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The end without a farewell.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            if tls.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(io::Error::other)?;
        }
    }

    /// Closed when it is dropped, save for a half.
    pub fn leave(&mut self, how: Leave) {
        // One that is gone already can't be left in any way.
        let _ = match how {
            Leave::Close => Ok(()),
            Leave::Reset => sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO))
                .map_err(io::Error::from),
            Leave::HalfClose => self.stream.shutdown(Shutdown::Write),
        };
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

pub fn config() -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let schemes = provider
        .signature_verification_algorithms
        .supported_schemes();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(schemes)))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The server is a child of ours on loopback: what it is called does not matter here.
#[derive(Debug)]
struct Anybody(Vec<SignatureScheme>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
