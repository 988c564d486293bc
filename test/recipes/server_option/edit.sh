# shellcheck shell=sh
# shellcheck disable=SC2034 # for run.sh
heading="How to add a server option"

after native/pyloop/src/http/options.rs '^        server_header: ' <<'RUST'
        made_up: Time { least: 1 } = 3_000, "time that a header tells";
RUST

after native/pyloop/src/http/server.rs 'out\.extend_from_slice\(self\.live\.date' <<'RUST'
        if let Some(parts) = self.parts.get() {
            let line = format!("made-up: {}\r\n", parts.config.given.made_up);
            out.extend_from_slice(line.as_bytes());
        }
RUST
