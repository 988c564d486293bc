//! The task of a connection: connects, writes what a turn has gathered, reads replies, and starts
//! again when the connection is lost.
//!
//! Thread: the loop's. Never: writes without reading: each poll serves both ways, so a peer whose
//! buffer is full is read, and can read again. Never: leaves a caller without an answer.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use reactor::own::Own;
use reactor::{Handle, Sleep, Watch, clock};

use crate::redis::config::{Address, Config};
use crate::redis::connect;
use crate::redis::failure::Failure;
use crate::redis::link::Link;
use crate::redis::resp::{self, Decoder, Reply};
use crate::redis::wire::Wire;

/// Read at once; and how much of it in one turn before others have theirs.
pub(crate) const CHUNK: usize = 64 << 10;
const TURN: usize = 16;

/// After how many timeouts without a byte the connection is given up.
const SILENCE: u64 = 3;

/// Answers everyone when the task ends, however it does.
struct Last(Arc<Link>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.fail(&Failure::Closed, true);
    }
}

pub(crate) async fn drive(link: Arc<Link>, io: Handle) {
    let last = Last(link);
    let link = &last.0;
    let mut backoff = link.config.backoff;
    loop {
        let lost = match Connection::open(link, &io).await {
            Ok(mut connection) => {
                backoff = link.config.backoff;
                connection.serve().await
            }
            Err(why) => why,
        };
        link.fail(&lost, false);
        if io.sleep(backoff).await.is_err() {
            return;
        }
        backoff = backoff.saturating_mul(2).min(link.config.longest_backoff);
    }
}

struct Connection<'a> {
    link: &'a Link,
    io: &'a Handle,
    socket: Watch<Own>,
    wire: Wire,
    out: Vec<u8>,
    sent: usize,
    input: Vec<u8>,
    filled: usize,
    decoder: Decoder,
    replies: Vec<Reply>,
    /// Looks for commands that have waited too long.
    alarm: Option<Sleep>,
    /// When the last bytes came.
    heard: u64,
}

impl<'a> Connection<'a> {
    async fn open(link: &'a Link, io: &'a Handle) -> Result<Self, Failure> {
        let socket = socket(link, io).await?;
        let mut connection = Connection {
            link,
            io,
            socket,
            wire: Wire::new(link.config.tls.as_ref())?,
            out: Vec::new(),
            sent: 0,
            input: vec![0; CHUNK],
            filled: 0,
            decoder: Decoder::default(),
            replies: Vec::new(),
            alarm: None,
            heard: clock::now(),
        };
        let greeting = greeting(&link.config);
        for command in &greeting {
            resp::encode(&mut connection.out, command);
        }
        let timeout = io.sleep(link.config.timeout);
        let greeted = poll_fn(|context| connection.poll_greeting(greeting.len(), context));
        first(greeted, timeout).await??;
        Ok(connection)
    }

    /// The replies to the greeting are nobody's but ours.
    fn poll_greeting(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        // What was read may ask for an answer: TLS greets first.
        let served = self
            .flush(context)
            .and_then(|_| self.read(context))
            .and_then(|()| self.flush(context));
        if let Err(why) = served {
            return Poll::Ready(Err(why));
        }
        // What the server says unasked is no reply.
        self.replies
            .retain(|reply| !matches!(reply, Reply::Push(_)));
        let refused = self.replies.iter().find_map(|reply| match reply {
            Reply::Error(text) => Some(Failure::Server(text.clone())),
            _ => None,
        });
        match (refused, self.replies.len()) {
            (Some(why), _) => Poll::Ready(Err(why)),
            (None, count) if count < wanted => Poll::Pending,
            (None, count) => {
                self.replies.clear();
                Poll::Ready(match count > wanted {
                    true => Err(Failure::Protocol("a reply that nobody asked for")),
                    false => Ok(()),
                })
            }
        }
    }

    /// Until the connection is lost.
    async fn serve(&mut self) -> Failure {
        poll_fn(|context| match self.poll_serve(context) {
            Ok(()) => Poll::Pending,
            Err(why) => Poll::Ready(why),
        })
        .await
    }

    fn poll_serve(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        let read = self.read(context);
        // What came before the end still answers its commands.
        self.link.answer(&mut self.replies)?;
        read?;
        // Looked at until it is quiet, so that its waker is left there.
        while self.link.work.poll(context).is_ready() {}
        self.write(context)?;
        self.watch_time(context)
    }

    /// Writes what the callers have left, until there is nothing more or no room for it.
    fn write(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        while self.flush(context)? {
            self.link.take(&mut self.out);
            if self.out.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Writes what is in our own buffer; `true` if all of it went out.
    fn flush(&mut self, context: &mut Context<'_>) -> Result<bool, Failure> {
        loop {
            let rest = &self.out[self.sent..];
            let done = match rest.is_empty() {
                true => self.wire.push(self.socket.get_ref()).map(|()| true),
                false => self.wire.send(self.socket.get_ref(), rest).map(|count| {
                    self.sent += count;
                    false
                }),
            };
            match done {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    match self.socket.poll_writable(context) {
                        Poll::Ready(ready) => ready.map_err(lost)?,
                        Poll::Pending => return Ok(false),
                    }
                }
                Err(error) => return Err(lost(error)),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        for _ in 0..TURN {
            match self.socket.poll_readable(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready.map_err(lost)?,
            }
            let socket = self.socket.get_ref();
            match self.wire.receive(socket, &mut self.input, &mut self.filled) {
                Ok(true) => self.heard = clock::now(),
                Ok(false) => return Err(Failure::Lost("closed by the server".to_owned())),
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(lost(error)),
            }
            self.decode()?;
        }
        context.waker().wake_by_ref();
        Ok(())
    }

    fn decode(&mut self) -> Result<(), Failure> {
        let mut at = 0;
        let input = &self.input[..self.filled];
        while at < self.filled
            && let Some(reply) = self.decoder.decode(input, &mut at)?
        {
            self.replies.push(reply);
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        if self.filled == 0 && self.input.len() > 16 * CHUNK {
            self.input = vec![0; CHUNK];
        }
        Ok(())
    }

    /// One timer for all: it comes up when the one who waited longest when it was set is due.
    /// Where nobody waits there is none.
    fn watch_time(&mut self, context: &mut Context<'_>) -> Result<(), Failure> {
        loop {
            if self.alarm.is_none() {
                let next = self.link.expire();
                let silence = self.check_silence()?;
                let next = next.into_iter().chain(silence).min();
                self.alarm = next.map(|next| self.io.sleep_until(next));
            }
            let Some(alarm) = &mut self.alarm else {
                return Ok(());
            };
            match Pin::new(alarm).poll(context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Err(_)) => return Err(Failure::Closed),
                Poll::Ready(Ok(())) => self.alarm = None,
            }
        }
    }

    /// A server that has been silent for so long, with replies overdue, is as good as lost. Gives the time to
    /// look again: those that have timed out take up room, and whoever waits for it has no time of its own.
    fn check_silence(&self) -> Result<Option<u64>, Failure> {
        if !self.link.is_overdue() {
            return Ok(None);
        }
        let patience = self.link.config.timeout.as_nanos() as u64 * SILENCE;
        let end = self.heard.saturating_add(patience);
        match clock::now() > end {
            true => Err(Failure::Lost("the server does not answer".to_owned())),
            false => Ok(Some(end + 1)),
        }
    }
}

/// A connected socket. Of several addresses each has its share of the time, and the first that
/// answers is taken.
async fn socket(link: &Link, io: &Handle) -> Result<Watch<Own>, Failure> {
    let timeout = link.config.timeout;
    let addresses = match &link.config.address {
        Address::Unix(path) => {
            let connecting = connect::unix(io, path);
            return first(connecting, io.sleep(timeout)).await?.map_err(lost);
        }
        Address::Tcp(addresses) => addresses,
    };
    let share = timeout / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut why = Failure::Lost("it has no address".to_owned());
    for address in addresses {
        let connecting = first(connect::tcp(io, address), io.sleep(share)).await;
        match connecting.and_then(|socket| socket.map_err(lost)) {
            Ok(socket) => return Ok(socket),
            Err(failure) => why = failure,
        }
    }
    Err(why)
}

/// What makes a fresh connection ours: the protocol, who we are, the database.
fn greeting(config: &Config) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<&str>> = Vec::new();
    let user = config.user.as_deref();
    let database = config.database.to_string();
    match (config.resp3, &config.password) {
        (true, Some(password)) => {
            let user = user.unwrap_or("default");
            commands.push(vec!["HELLO", "3", "AUTH", user, password]);
        }
        (true, None) => commands.push(vec!["HELLO", "3"]),
        (false, Some(password)) => {
            let user = user.into_iter();
            commands.push(
                ["AUTH"]
                    .into_iter()
                    .chain(user)
                    .chain([password.as_str()])
                    .collect(),
            );
        }
        (false, None) => {}
    }
    if config.database != 0 {
        commands.push(vec!["SELECT", &database]);
    }
    let owned = commands.into_iter();
    owned
        .map(|args| args.into_iter().map(str::to_owned).collect())
        .collect()
}

/// What comes first: the work, or the end of the time for it.
async fn first<T>(work: impl Future<Output = T>, timeout: Sleep) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    let mut timeout = std::pin::pin!(timeout);
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Ok(done));
        }
        let late = timeout.as_mut().poll(context);
        late.map(|_| Err(Failure::Lost("it took too long to connect".to_owned())))
    })
    .await
}

fn lost(error: std::io::Error) -> Failure {
    Failure::Lost(error.to_string())
}
