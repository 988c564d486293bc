//! Addresses of servers, as users write them.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)]

use dag::redis::{Address, Config, Failure};

#[test]
fn an_address_is_read_or_refused() {
    let config = Config::parse("redis://user:pass@127.0.0.1:7000/2").unwrap();
    assert_eq!(
        config.address,
        Address::Tcp(vec!["127.0.0.1:7000".parse().unwrap()])
    );
    assert_eq!((config.user.as_deref(), config.database), (Some("user"), 2));
    assert_eq!(config.password.as_deref(), Some("pass"));
    let config = Config::parse("unix:/run/redis.sock").unwrap();
    assert_eq!(config.address, Address::Unix("/run/redis.sock".into()));
    // Never plain text where `rediss:` was asked for; a machine without authorities refuses it.
    match Config::parse("rediss://127.0.0.1") {
        Ok(config) => assert!(config.tls.is_some()),
        Err(why) => assert!(matches!(why, Failure::Config(_))),
    }
    for bad in ["http://127.0.0.1", "127.0.0.1", "redis://127.0.0.1/x"] {
        assert!(
            matches!(Config::parse(bad), Err(Failure::Config(_))),
            "{bad}"
        );
    }
}

#[test]
fn a_login_is_decoded() {
    for (login, user, password) in [
        ("us%20er:p%40ss%2Fword", Some("us er"), "p@ss/word"),
        (":p%3Ass%C3%A9", None, "p:ss\u{e9}"),
        ("a%40b:c", Some("a@b"), "c"),
        // What was good before.
        ("a:100%", Some("a"), "100%"),
        ("a:p@ss/word", Some("a"), "p@ss/word"),
        (":50%zz", None, "50%zz"),
    ] {
        let config = Config::parse(&format!("redis://{login}@127.0.0.1")).unwrap();
        let found = (config.user.as_deref(), config.password.as_deref());
        assert_eq!(found, (user, Some(password)), "{login}");
    }
    assert!(matches!(
        Config::parse("redis://:%FF@127.0.0.1"),
        Err(Failure::Config(_))
    ));
}

#[test]
fn an_address_of_ipv6_may_go_without_a_port() {
    for (host, address) in [("[::1]", "[::1]:6379"), ("[::1]:7000", "[::1]:7000")] {
        let config = Config::parse(&format!("redis://{host}/1")).unwrap();
        assert_eq!(config.address, Address::Tcp(vec![address.parse().unwrap()]));
    }
}

#[test]
fn what_is_wrong_with_the_address_is_told() {
    let told = |url: &str| match Config::parse(url) {
        Err(Failure::Config(what)) => what,
        other => panic!("{other:?}"),
    };
    assert!(told("rediss://127.0.0.1?cacert=/nowhere").contains("/nowhere"));
    assert!(told("redis://127.0.0.1?cacert=/nowhere").contains("rediss://"));
    assert!(told("rediss://127.0.0.1?what=ever").contains("what=ever"));
    assert!(told("unix:/run/redis.sock?connections=0").contains("connections"));
    assert!(told("unix:/run/redis.sock?timeout=soon").contains("milliseconds"));
    assert!(told("unix:/run/redis.sock?protocol=1").contains("protocol"));
    assert!(told("unix:/run/redis.sock?coalesce=often").contains("coalesce"));
    assert!(told("http://127.0.0.1").contains("redis://"));
}

#[test]
fn options_follow_the_question_mark() {
    let config = Config::parse("unix:/run/redis.sock?connections=3&timeout=250&protocol=3");
    let config = config.unwrap();
    assert_eq!(config.address, Address::Unix("/run/redis.sock".into()));
    assert_eq!((config.connections, config.resp3), (3, true));
    assert_eq!(config.timeout.as_millis(), 250);
    let config = Config::parse("redis://127.0.0.1/4?coalesce=true&protocol=2").unwrap();
    assert_eq!(
        (config.coalesce, config.resp3, config.database),
        (true, false, 4)
    );
}
