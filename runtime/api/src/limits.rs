//! Every limit of the server, and why it is what it is.

use std::time::Duration;

/// Bytes of a request's body: the most that one append to a journal may have
/// (32 MiB), and room for what is around it.
pub const BODY_BYTES_MAX: usize = (32 << 20) + (256 << 10);

/// How long a request's body may take: 32 MiB at 0.5 MiB/s. A client that sends a
/// byte a second would keep its buffer for ever.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(64);

/// Bytes of a request's headers: a token has 8 KiB at most.
pub const HEADER_BYTES_MAX: usize = 32 << 10;

/// How long a request's headers may take, and the handshake before them; a
/// connection that never asks for anything would be kept for nothing.
pub const HEADER_TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes of a name, as the catalog has it.
pub const NAME_BYTES_MAX: usize = 200;

/// Bytes of an idempotency key, as a journal has it.
pub const KEY_BYTES_MAX: usize = 4096;

/// Connections at a time: half of the file descriptors that `tidegate serve` asks
/// for, since journals and connectors need some too.
pub const CONNECTIONS_MAX: usize = 4_096;

/// Calls at a time on one connection. A client that wants more opens another one.
pub const STREAMS_MAX: u32 = 256;

/// Calls at a time on all connections: each waiting one is a few KiB.
pub const CALLS_MAX: usize = 4096;

/// How long a connection without a call is kept: longer than the pauses of
/// clients that call again, shorter than it takes to collect many of them.
pub const IDLE_MAX: Duration = Duration::from_secs(120);

/// How often an HTTP/2 client is asked whether it is still there, and how long it
/// has to answer. A machine that lost its power sends no goodbye.
pub const PING_EVERY: Duration = Duration::from_secs(30);
/// See [`PING_EVERY`].
pub const PING_TIME_MAX: Duration = Duration::from_secs(20);

/// Bytes that wait to be written, for each stream and connection: what is beyond
/// waits in the buffers below, which have limits of their own.
pub const SEND_BUFFER_BYTES: usize = 64 << 10;

/// Messages that wait for a client. Each may be a document of 16 MiB.
pub const WAITING_MAX: usize = 4;

/// How long a message may wait for a client that is not reading: longer than a
/// hiccup of a network.
pub const KEEP_UP_MAX: Duration = Duration::from_secs(60);

/// How often a waiting caller hears that its call is alive. Proxies cut
/// connections that are silent for a minute.
pub const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);

/// How often a watcher of the host's health is told of a change: as quick as the
/// load balancers that watch.
pub const HEALTH_EVERY: Duration = Duration::from_secs(1);

/// How long calls have to end when the server stops: what they wait for is told
/// to call again at once, and only appends and publications take longer.
pub const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// How long the server waits before it accepts again when the process is out of
/// file descriptors.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
