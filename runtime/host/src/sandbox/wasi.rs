//! WASI 0.2 for guests: everything a standard library asks for, and nothing
//! behind it but what was granted.
//!
//! No arguments, no environment, no standard input; the other two streams go
//! to the log. Clocks and random numbers are the system's. Of the file system
//! there are the granted directories, of the network the granted addresses
//! (modules `sockets` and `http`).
//!
//! File operations run on the guest's own thread. The one thing that nothing
//! here can end is a file operation that the system itself does not end, as on
//! a network file system whose server is gone.

use std::sync::Arc;

use wasmtime::component::{HasData, HasSelf, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random, sockets};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi::sockets::{WasiSockets, WasiSocketsView};
use wasmtime_wasi::{FsPerms, WasiCtx};
use wasmtime_wasi_http::p2::bindings::http;
use wasmtime_wasi_http::{WasiHttp, WasiHttpView};

use super::grant::GrantError;
use super::guest::Guest;
use super::log::{GuestLog, LineStream};
use super::session::SessionConfig;
use super::sockets::Sockets;

/// The version of WASI that is linked; guests of any 0.2 fit.
const VERSION: &str = "0.2.12";

/// Gives the interfaces of `wasi:io` the guest's table.
struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links interfaces so that each call says its interface's name first, and
/// lists their names.
macro_rules! interfaces {
    ($($name:literal: $module:ident::$interface:ident $(($options:expr))?, $data:ty, $guest:ident => $view:expr;)*) => {
        /// The interfaces of WASI that a guest may import.
        pub(super) const INTERFACES: &[(&str, &str)] = &[$(($name, VERSION)),*];

        /// Links WASI.
        pub(super) fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
            $($module::$interface::add_to_linker::<Guest, $data>(linker, $($options,)? |guest| {
                let $guest = guest.enter($name);
                $view
            })?;)*
            Ok(())
        }
    };
}

interfaces! {
    "wasi:cli/environment": cli::environment, WasiCli, guest => guest.cli();
    "wasi:cli/exit": cli::exit, WasiCli, guest => guest.cli();
    "wasi:cli/stdin": cli::stdin, WasiCli, guest => guest.cli();
    "wasi:cli/stdout": cli::stdout, WasiCli, guest => guest.cli();
    "wasi:cli/stderr": cli::stderr, WasiCli, guest => guest.cli();
    "wasi:cli/terminal-input": cli::terminal_input, WasiCli, guest => guest.cli();
    "wasi:cli/terminal-output": cli::terminal_output, WasiCli, guest => guest.cli();
    "wasi:cli/terminal-stdin": cli::terminal_stdin, WasiCli, guest => guest.cli();
    "wasi:cli/terminal-stdout": cli::terminal_stdout, WasiCli, guest => guest.cli();
    "wasi:cli/terminal-stderr": cli::terminal_stderr, WasiCli, guest => guest.cli();
    "wasi:clocks/monotonic-clock": clocks::monotonic_clock, WasiClocks, guest => guest.clocks();
    "wasi:clocks/wall-clock": clocks::wall_clock, WasiClocks, guest => guest.clocks();
    "wasi:filesystem/types": filesystem::types, WasiFilesystem, guest => guest.filesystem();
    "wasi:filesystem/preopens": filesystem::preopens, WasiFilesystem, guest => guest.filesystem();
    "wasi:http/types": http::types(&http::types::LinkOptions::default()), WasiHttp, guest => guest.http();
    "wasi:http/outgoing-handler": http::outgoing_handler, WasiHttp, guest => guest.http();
    "wasi:io/error": io::error, Table, guest => &mut guest.table;
    "wasi:io/poll": io::poll, Table, guest => &mut guest.table;
    "wasi:io/streams": io::streams, Table, guest => &mut guest.table;
    "wasi:random/random": random::random, WasiRandom, guest => guest.random();
    "wasi:random/insecure": random::insecure, WasiRandom, guest => guest.random();
    "wasi:random/insecure-seed": random::insecure_seed, WasiRandom, guest => guest.random();
    "wasi:sockets/network": sockets::network(&sockets::network::LinkOptions::default()), WasiSockets, guest => guest.sockets();
    "wasi:sockets/instance-network": sockets::instance_network, WasiSockets, guest => guest.sockets();
    "wasi:sockets/ip-name-lookup": sockets::ip_name_lookup, HasSelf<Guest>, guest => guest;
    "wasi:sockets/tcp": sockets::tcp, WasiSockets, guest => guest.sockets();
    "wasi:sockets/tcp-create-socket": sockets::tcp_create_socket, WasiSockets, guest => guest.sockets();
    "wasi:sockets/udp": sockets::udp, WasiSockets, guest => guest.sockets();
    "wasi:sockets/udp-create-socket": sockets::udp_create_socket, WasiSockets, guest => guest.sockets();
}

/// Makes what is behind the interfaces for one guest.
pub(super) fn context(
    config: &SessionConfig,
    log: &Arc<GuestLog>,
    sockets: &Arc<Sockets>,
) -> Result<WasiCtx, GrantError> {
    let mut wasi = WasiCtx::builder();
    wasi.stdout(LineStream::stdout(log.clone()))
        .stderr(LineStream::stderr(log.clone()))
        // On a thread of their own, file operations would outlive a call that
        // is dropped, and land after the next session has started.
        .allow_blocking_current_thread(true);
    sockets.guard(&mut wasi);
    let permissions = match config.read_only {
        true => FsPerms::ReadOnly,
        false => FsPerms::ReadWrite,
    };
    for directory in config.grants.directories() {
        wasi.preopened_dir(&directory.host, &directory.guest, permissions)
            .map_err(|error| GrantError::Directory {
                path: directory.host.clone(),
                reason: format!("{error:#}"),
            })?;
    }
    Ok(wasi.build())
}
