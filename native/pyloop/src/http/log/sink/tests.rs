//! Lines reach their reader whole, or are counted.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn piped(shape: Shape) -> (Sink, io::PipeReader) {
    let (reader, writer) = io::pipe().unwrap();
    (Sink::start(writer.into(), None, shape).unwrap(), reader)
}

fn push(sink: &Sink, text: &str) {
    sink.push(|out| out.extend_from_slice(format!("{text}\n").as_bytes()));
}

#[test]
fn a_line_is_written_without_another_one_after_it() {
    let (sink, reader) = piped(Shape::Text);
    push(&sink, "first");
    let mut lines = BufReader::new(reader).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    push(&sink, "second");
    assert_eq!(lines.next().unwrap().unwrap(), "second");
}

#[test]
fn what_waits_is_written_when_the_sink_ends() {
    let (sink, mut reader) = piped(Shape::Text);
    for number in 0..100 {
        push(&sink, &format!("line {number}"));
    }
    drop(sink);
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all.lines().count(), 100);
    assert!(all.ends_with("line 99\n"));
}

#[test]
fn flush_returns_when_all_is_written() {
    let (sink, mut reader) = piped(Shape::Text);
    push(&sink, "here");
    assert!(sink.flush(LONG));
    let mut five = [0; 5];
    reader.read_exact(&mut five).unwrap();
    assert_eq!(&five, b"here\n");
    assert!(sink.flush(Duration::ZERO));
}

#[test]
fn a_reader_that_does_not_read_holds_up_nobody_and_is_told_what_is_missing() {
    for shape in [Shape::Text, Shape::Json] {
        let (sink, reader) = piped(shape);
        let pushed = 60_000;
        for number in 0..pushed {
            push(&sink, &format!("{number:0>99}"));
        }
        // More than the pipe, the thread and the buffer hold: the rest was dropped at once.
        assert!(!sink.flush(Duration::ZERO));
        drop(sink);
        let mut seen = 0;
        let mut missing = 0;
        for line in BufReader::new(reader).lines() {
            let line = line.unwrap();
            match line.len() {
                99 => seen += 1,
                _ => missing += counted(&line, shape),
            }
        }
        assert!(missing > 0);
        assert_eq!(seen + missing, pushed);
    }
}

fn counted(line: &str, shape: Shape) -> u64 {
    let number = match shape {
        Shape::Text => line.split(' ').nth(2),
        Shape::Json => line
            .split("\"dropped\":")
            .nth(1)
            .and_then(|rest| rest.split(',').next()),
    };
    number.and_then(|number| number.parse().ok()).unwrap()
}

#[test]
fn lines_of_several_writers_are_whole() {
    let (reader, writer) = io::pipe().unwrap();
    let sinks: Vec<_> = (0..3)
        .map(|_| {
            let fd = writer.try_clone().unwrap();
            Sink::start(fd.into(), None, Shape::Text).unwrap()
        })
        .collect();
    drop(writer);
    let writing = thread::spawn(move || {
        for number in 0..3000 {
            for (at, sink) in sinks.iter().enumerate() {
                let letter = ["a", "b", "c"][at];
                push(sink, &letter.repeat(1 + number % 700));
            }
            if number % 500 == 0 {
                sinks.iter().for_each(|sink| assert!(sink.flush(LONG)));
            }
        }
        sinks.iter().for_each(|sink| assert!(sink.flush(LONG)));
    });
    let mut count = 0;
    for line in BufReader::new(reader).lines() {
        let line = line.unwrap();
        count += 1;
        let first = line.chars().next().unwrap();
        assert!(line.chars().all(|letter| letter == first), "{line}");
    }
    writing.join().unwrap();
    assert_eq!(count, 9000);
}

#[test]
fn a_reader_that_has_left_holds_up_nobody() {
    let (sink, reader) = piped(Shape::Text);
    drop(reader);
    for _ in 0..10_000 {
        push(&sink, &"x".repeat(200));
    }
    assert!(sink.flush(LONG));
}

#[test]
fn a_file_that_was_moved_away_is_made_anew() {
    // SAFETY: no precondition. Files of other tests may be written by all meanwhile.
    let mask = unsafe { libc::umask(0) };
    let path = std::env::temp_dir().join(format!("access-{}.log", std::process::id()));
    let moved = path.with_extension("1");
    let open = || {
        std::fs::File::options()
            .append(true)
            .create(true)
            .open(&path)
            .unwrap()
    };
    let sink = Sink::start(open().into(), Some(path.clone()), Shape::Text).unwrap();
    push(&sink, "one");
    assert!(sink.flush(LONG));
    std::fs::rename(&path, &moved).unwrap();
    let mut at = 0;
    // It looks once a second.
    while !path.exists() {
        at += 1;
        push(&sink, &format!("more {at}"));
        assert!(sink.flush(LONG));
        thread::sleep(Duration::from_millis(20));
    }
    let (old, new) = (
        std::fs::read_to_string(&moved).unwrap(),
        std::fs::read_to_string(&path).unwrap(),
    );
    assert!(old.starts_with("one\n"));
    assert_eq!(new, format!("more {at}\n"));
    // As the server makes it, whatever others may do by the process's mask.
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    // SAFETY: no precondition.
    unsafe { libc::umask(mask) };
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&moved).unwrap();
}

#[test]
fn a_descriptor_that_does_not_block_is_waited_for() {
    let (reader, writer) = io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let sink = Sink::start(writer.into(), None, Shape::Text).unwrap();
    for number in 0..4000 {
        push(&sink, &format!("{number:0>99}"));
    }
    drop(sink);
    assert_eq!(BufReader::new(reader).lines().count(), 4000);
}

/// The child of a fork has no thread that would give the lock back.
#[test]
fn a_child_waits_for_no_lock_of_its_parent() {
    pyrt::fork::watch(|_| ());
    let (sink, _reader) = piped(Shape::Text);
    let shared = Arc::clone(&sink.shared);
    let (held, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let holder = {
        let (held, go) = (Arc::clone(&held), Arc::clone(&go));
        thread::spawn(move || {
            let _state = shared.lock();
            held.wait();
            go.wait();
        })
    };
    held.wait();
    // SAFETY: the child uses the sink, whose lock another thread holds, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        push(&sink, "lost");
        sink.flush(LONG);
        drop(sink);
        // SAFETY: no precondition.
        unsafe { libc::_exit(0) };
    }
    let until = Instant::now() + LONG;
    let mut status = -1;
    // SAFETY: a child of this process, and a place for its status.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > until {
            // SAFETY: the child, which was not waited for yet.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        thread::sleep(Duration::from_millis(5));
    }
    go.wait();
    holder.join().unwrap();
    assert_eq!(status, 0);
}
