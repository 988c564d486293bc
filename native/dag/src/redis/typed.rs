//! The commands that graphs use most, with their replies as Rust values.

use crate::redis::client::Redis;
use crate::redis::command::Arg;
use crate::redis::failure::Failure;
use crate::redis::resp::Reply;

type Bytes = Vec<u8>;

impl Redis {
    pub async fn get<'a>(&self, key: impl Into<Arg<'a>>) -> Result<Option<Bytes>, Failure> {
        maybe(self.send(&["GET".into(), key.into()]).await?)
    }

    pub async fn set<'a>(
        &self,
        key: impl Into<Arg<'a>>,
        value: impl Into<Arg<'a>>,
    ) -> Result<(), Failure> {
        match self.send(&["SET".into(), key.into(), value.into()]).await? {
            Reply::Simple(_) => Ok(()),
            _ => Err(Failure::Unexpected("OK")),
        }
    }

    pub async fn mget<'a, K: Into<Arg<'a>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Bytes>>, Failure> {
        self.maybes(command(["MGET".into()], keys)).await
    }

    pub async fn hget<'a>(
        &self,
        key: impl Into<Arg<'a>>,
        field: impl Into<Arg<'a>>,
    ) -> Result<Option<Bytes>, Failure> {
        maybe(
            self.send(&["HGET".into(), key.into(), field.into()])
                .await?,
        )
    }

    pub async fn hmget<'a, F: Into<Arg<'a>>>(
        &self,
        key: impl Into<Arg<'a>>,
        fields: impl IntoIterator<Item = F>,
    ) -> Result<Vec<Option<Bytes>>, Failure> {
        self.maybes(command(["HMGET".into(), key.into()], fields))
            .await
    }

    /// Fields and values, in the order of the server.
    pub async fn hgetall<'a>(
        &self,
        key: impl Into<Arg<'a>>,
    ) -> Result<Vec<(Bytes, Bytes)>, Failure> {
        match self.send(&["HGETALL".into(), key.into()]).await? {
            Reply::Map(pairs) => {
                let pairs = pairs.into_iter();
                pairs
                    .map(|(key, value)| Ok((bytes(key)?, bytes(value)?)))
                    .collect()
            }
            reply => {
                let mut items = items(reply)?.into_iter();
                let mut pairs = Vec::with_capacity(items.len() / 2);
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((bytes(key)?, bytes(value)?));
                }
                Ok(pairs)
            }
        }
    }

    pub async fn lrange<'a>(
        &self,
        key: impl Into<Arg<'a>>,
        from: i64,
        to: i64,
    ) -> Result<Vec<Bytes>, Failure> {
        self.all(&["LRANGE".into(), key.into(), from.into(), to.into()])
            .await
    }

    pub async fn smembers<'a>(&self, key: impl Into<Arg<'a>>) -> Result<Vec<Bytes>, Failure> {
        self.all(&["SMEMBERS".into(), key.into()]).await
    }

    pub async fn zrange<'a>(
        &self,
        key: impl Into<Arg<'a>>,
        from: i64,
        to: i64,
    ) -> Result<Vec<Bytes>, Failure> {
        self.all(&["ZRANGE".into(), key.into(), from.into(), to.into()])
            .await
    }

    /// Runs a Lua script on the server.
    pub async fn eval<'a, K: Into<Arg<'a>>, A: Into<Arg<'a>>>(
        &self,
        script: &'a str,
        keys: impl IntoIterator<Item = K>,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Reply, Failure> {
        let keys: Vec<Arg<'a>> = keys.into_iter().map(Into::into).collect();
        let count = Arg::from(keys.len() as i64);
        let mut whole = command(["EVAL".into(), script.into(), count], keys);
        whole.extend(args.into_iter().map(Into::into));
        self.send(&whole).await
    }

    async fn all(&self, args: &[Arg<'_>]) -> Result<Vec<Bytes>, Failure> {
        let items = items(self.send(args).await?)?;
        items.into_iter().map(bytes).collect()
    }

    async fn maybes(&self, args: Vec<Arg<'_>>) -> Result<Vec<Option<Bytes>>, Failure> {
        let items = items(self.send(&args).await?)?;
        items.into_iter().map(maybe).collect()
    }
}

fn command<'a, const N: usize, A: Into<Arg<'a>>>(
    head: [Arg<'a>; N],
    rest: impl IntoIterator<Item = A>,
) -> Vec<Arg<'a>> {
    let rest = rest.into_iter().map(Into::into);
    head.into_iter().chain(rest).collect()
}

fn bytes(reply: Reply) -> Result<Bytes, Failure> {
    match reply {
        Reply::Bytes(bytes) => Ok(bytes),
        Reply::Simple(text) => Ok(text.into_bytes()),
        _ => Err(Failure::Unexpected("a string")),
    }
}

fn maybe(reply: Reply) -> Result<Option<Bytes>, Failure> {
    match reply {
        Reply::Nil => Ok(None),
        reply => bytes(reply).map(Some),
    }
}

fn items(reply: Reply) -> Result<Vec<Reply>, Failure> {
    match reply {
        Reply::Array(items) | Reply::Set(items) => Ok(items),
        _ => Err(Failure::Unexpected("a list")),
    }
}
