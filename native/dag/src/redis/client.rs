//! The client as its users hold it: a server, or the store inside this process.
//!
//! Thread: any. A future that is dropped leaves its command as it is; the reply goes to nobody.

use std::future::poll_fn;
use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};

use reactor::{Handle, Spawned};

use crate::redis::answer::Answer;
use crate::redis::command::Arg;
use crate::redis::config::Config;
use crate::redis::drive::drive;
use crate::redis::failure::Failure;
use crate::redis::link::Link;
use crate::redis::resp::Reply;
use crate::redis::shared::{self, List};
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
        shared::check(args)?;
        match &self.0 {
            Backend::Server(server) => {
                let link = server.link();
                let mut place = link.place();
                let answer = poll_fn(|context| link.send(args, &mut place, context)).await?;
                drop(place);
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

/// Commands to be sent one right after the other. With `MULTI` and `EXEC` among them they are a
/// transaction, and no command of others comes between them.
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
        let list = match shared::check_list(&self.commands) {
            Ok(list) => list,
            Err(why) => return vec![Err(why); self.commands.len()],
        };
        let mut answers = Vec::with_capacity(self.commands.len());
        let server = match &self.redis.0 {
            Backend::Server(server) => server,
            Backend::Embedded(store) => {
                let commands = self.commands.iter();
                answers.extend(commands.map(|command| store.run(command)));
                return answers;
            }
        };
        // On one connection, so that they are carried out in order.
        for sent in self.sent(server.link(), list).await {
            answers.push(match sent {
                Ok(answer) => poll_fn(|context| answer.poll(context)).await,
                Err(why) => Err(why),
            });
        }
        answers
    }

    async fn sent(&self, link: &Link, list: List) -> Vec<Result<Arc<Answer>, Failure>> {
        if list == List::Whole {
            let mut place = link.place();
            let sent = poll_fn(|context| link.send_whole(&self.commands, &mut place, context));
            let sent = sent.await;
            return match sent {
                Ok(answers) => answers.into_iter().map(Ok).collect(),
                Err(why) => vec![Err(why); self.commands.len()],
            };
        }
        let mut sent = Vec::with_capacity(self.commands.len());
        for command in &self.commands {
            let mut place = link.place();
            sent.push(poll_fn(|context| link.send(command, &mut place, context)).await);
        }
        sent
    }
}
