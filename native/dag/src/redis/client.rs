//! The client as its users hold it: a server, or the store inside this process.
//!
//! Thread: any. A future that is dropped leaves its command as it is; the reply goes to nobody.

use std::future::poll_fn;
use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};

use reactor::{Handle, Spawned};

use crate::redis::command::Arg;
use crate::redis::config::Config;
use crate::redis::drive::drive;
use crate::redis::failure::Failure;
use crate::redis::link::Link;
use crate::redis::resp::Reply;
use crate::redis::store::Store;

struct Server {
    links: Box<[Arc<Link>]>,
    /// Counts the commands, which go round the connections.
    sent: AtomicUsize,
    /// Dropped with the last clone of the client, they end the connections.
    _tasks: Vec<Spawned<()>>,
}

impl Server {
    fn link(&self) -> &Link {
        match &*self.links {
            [only] => only,
            // Relaxed: any order does.
            several => &several[self.sent.fetch_add(1, Ordering::Relaxed) % several.len()],
        }
    }
}

#[derive(Clone)]
enum Backend {
    Server(Arc<Server>),
    Embedded(Arc<Store>),
}

/// Shared by its clones.
#[derive(Clone)]
pub struct Redis(Backend);

impl Redis {
    /// Connects in the background; commands wait for it, and fail where it fails.
    pub fn open(io: &Handle, config: Config) -> Result<Self, Failure> {
        let count = config.connections.max(1);
        let links: Box<[_]> = (0..count)
            .map(|_| Arc::new(Link::new(config.clone())))
            .collect();
        let tasks = links.iter().map(|link| {
            let task = io.spawn_admitted(drive(link.clone(), io.clone()));
            task.map_err(|_| Failure::Closed)
        });
        let _tasks = tasks.collect::<Result<_, _>>()?;
        let sent = AtomicUsize::new(0);
        Ok(Redis(Backend::Server(Arc::new(Server {
            links,
            sent,
            _tasks,
        }))))
    }

    /// An empty store in this process: nothing to start, gone with its last clone.
    pub fn embedded() -> Self {
        Redis(Backend::Embedded(Arc::new(Store::default())))
    }

    /// Any command; the server's own error is `Failure::Server`.
    pub async fn cmd<'a, A: Into<Arg<'a>>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Reply, Failure> {
        let args: Vec<Arg<'a>> = args.into_iter().map(Into::into).collect();
        self.send(&args).await
    }

    pub(crate) async fn send<A: AsRef<[u8]>>(&self, args: &[A]) -> Result<Reply, Failure> {
        match &self.0 {
            Backend::Server(server) => {
                let link = server.link();
                let answer = poll_fn(|context| link.send(args, context)).await?;
                poll_fn(|context| answer.poll(context)).await
            }
            Backend::Embedded(store) => store.run(args),
        }
    }

    /// Commands that are sent together and answered together.
    pub fn pipeline(&self) -> Pipeline<'_> {
        Pipeline {
            redis: self,
            commands: Vec::new(),
        }
    }
}

/// Commands to be sent one right after the other. Not a transaction: say `MULTI` for that.
pub struct Pipeline<'a> {
    redis: &'a Redis,
    commands: Vec<Vec<Arg<'a>>>,
}

impl<'a> Pipeline<'a> {
    pub fn cmd<A: Into<Arg<'a>>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.commands
            .push(args.into_iter().map(Into::into).collect());
        self
    }

    /// The answers, in order; each command stands for itself.
    pub async fn run(self) -> Vec<Result<Reply, Failure>> {
        let mut answers = Vec::with_capacity(self.commands.len());
        let Backend::Server(server) = &self.redis.0 else {
            for command in &self.commands {
                answers.push(self.redis.send(command).await);
            }
            return answers;
        };
        // On one connection, so that they are carried out in order.
        let link = server.link();
        let mut sent = Vec::with_capacity(self.commands.len());
        for command in &self.commands {
            sent.push(poll_fn(|context| link.send(command, context)).await);
        }
        for sent in sent {
            answers.push(match sent {
                Ok(answer) => poll_fn(|context| answer.poll(context)).await,
                Err(why) => Err(why),
            });
        }
        answers
    }
}
