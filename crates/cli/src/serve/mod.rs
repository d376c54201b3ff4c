//! `traderharness serve`: opens the doors onto hosted sessions, and says how to connect. What a caller may do is the house's to say.

pub(crate) mod desk;
pub(crate) mod folder;
pub(crate) mod options;
mod prune;
mod record;
mod token;

pub(crate) use options::ServeOptions;

use crate::fault::{Class, Fault, Outcome};
use crate::report::{print, tell};
use desk::{Desk, not_opened};
use options::{ServeCommand, TokenOptions};
use serde_json::json;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use traderharness_serve::House;
use traderharness_serve::http::{self, Limits, Seen, Settings};
use traderharness_serve::mcp;

/// Threads that drive connections. Calls of the house have threads of their own.
const DRIVERS: usize = 2;

pub(crate) fn serve(options: &ServeOptions) -> Outcome {
    match &options.command {
        Some(ServeCommand::Check(check)) => return desk::check(check),
        Some(ServeCommand::Schema) => return desk::schema(),
        Some(ServeCommand::Token(token)) => return draw(token),
        Some(ServeCommand::Prune(options)) => return prune::run(options),
        Some(ServeCommand::Record(options)) => return record::run(options),
        None => {}
    }
    let address = options.http.ok_or_else(|| Fault::text(Class::Input, "--http ADDR is missing"))?;
    let settings = Settings { hosts: options.allow_host.clone(), limits: Limits::default() };
    settings.check(address, options.desk.config.is_some()).map_err(|fault| {
        Fault::new(Class::Input, fault)
            .hint("127.0.0.1 serves this machine; another address needs --config FILE and --allow-host NAME")
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(DRIVERS)
        // Calls of both doors, and some for the system's own name look-ups and signals.
        .max_blocking_threads(settings.limits.calls * 2 + 8)
        .thread_name("door")
        .enable_all()
        .build()
        .map_err(|e| Fault::new(Class::Environment, e).context("no threads for the door"))?;
    // Bound before anything is loaded: a taken port is told at once.
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).map_err(|e| {
        Fault::new(Class::Environment, e)
            .context(format!("{address} cannot be served on"))
            .hint("another program may hold the port; port 0 takes a free one")
    })?;
    let bound = listener.local_addr().map_err(|e| Fault::new(Class::Environment, e))?;
    let desk = Desk::open(&options.desk, options.json)?;
    let secret = desk.secret.clone();
    if options.desk.config.is_none() && options.desk.keep.is_none() && !options.print_token {
        return Err(Fault::text(Class::Input, "nobody would know the token of this server")
            .hint("--keep DIR writes it to DIR/private/token; --print-token prints it"));
    }
    let house = House::open(desk.config).map_err(|e| not_opened(e, options.desk.keep.as_deref()))?;
    // Heard before anybody is told that the server is there: who stops it at once must not kill it.
    let closing = {
        let _inside = runtime.enter();
        signal()
    };
    announce(options, bound, secret.as_ref());
    let whole = runtime.block_on(run(house, settings, bound, listener, options.access_log, closing));
    // What did not end in time is not waited for again.
    runtime.shutdown_background();
    if whole {
        Ok(ExitCode::SUCCESS)
    } else {
        Err(Fault::text(Class::Stopped, "some calls had not ended when the server stopped")
            .hint("a call that was answered is kept; one that was not is done again by the client under its key"))
    }
}

/// Serves until a signal comes. The second signal ends the process at once.
async fn run(
    house: Arc<House>,
    settings: Settings,
    bound: SocketAddr,
    listener: tokio::net::TcpListener,
    access_log: bool,
    closed: impl Future<Output = ()> + Send + 'static,
) -> bool {
    let log = access_log.then(|| -> http::Log { Arc::new(|seen: &Seen| tell(&line(seen))) });
    let door = http::Door::new(Arc::clone(&house), settings, Some(bound), log);
    let mcp_settings = mcp::HttpSettings { hosts: door.hosts().to_vec(), ..mcp::HttpSettings::default() };
    let mounted = mcp::router(mcp::Door::new(house), &mcp_settings);
    let closing = async {
        closed.await;
        // From here on the second one is waited for.
        let again = signal();
        tell("Closing: running calls end first. Press Ctrl-C again to stop at once.");
        tokio::spawn(async move {
            again.await;
            std::process::exit(i32::from(Class::Stopped as u8));
        });
    };
    door.serve(listener, Some(mounted), closing).await
}

fn line(seen: &Seen) -> String {
    json!({ "method": seen.method, "route": seen.route, "status": seen.status, "micros": seen.micros, "caller": seen.caller })
        .to_string()
}

/// Hears Ctrl-C and SIGTERM from now on; what it gives waits for the first of them. Called inside of a runtime.
pub(crate) fn signal() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    let heard = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok())
    };
    async move {
        #[cfg(unix)]
        if let Some((mut interrupt, mut terminate)) = heard {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        if tokio::signal::ctrl_c().await.is_err() {
            // Where no signal can be heard, the process is ended from outside.
            std::future::pending::<()>().await;
        }
    }
}

/// Says where it serves and how to try it.
fn announce(options: &ServeOptions, bound: SocketAddr, secret: Option<&token::Kept>) {
    let url = format!("http://{bound}");
    let shown = secret.filter(|_| options.print_token).map(|kept| kept.token.as_str());
    let file = secret.and_then(|kept| kept.path.as_deref());
    if options.json {
        print(&json!({ "url": url, "mcp": format!("{url}/mcp"), "token_file": file, "token": shown }).to_string());
        return;
    }
    print(&format!("Serving {url} (HTTP) and {url}/mcp (MCP). Stop it with Ctrl-C."));
    let token = match (shown, file) {
        (Some(token), _) => {
            print(&format!("Token: {token}"));
            token.to_owned()
        }
        (None, Some(file)) => {
            print(&format!("The token is in {}", file.display()));
            format!("$(cat {})", file.display())
        }
        (None, None) => "$TOKEN".to_owned(),
    };
    print(&format!("Try: curl -s -H \"Authorization: Bearer {token}\" {url}/v1/tools"));
}

fn draw(options: &TokenOptions) -> Outcome {
    let (token, digest) = token::new()?;
    print(&if options.json {
        json!({ "token": token, "token_sha256": digest }).to_string()
    } else {
        format!(
            "token: {token}\ntoken_sha256: {digest}\nGive the token to the caller; only the digest belongs into the configuration."
        )
    });
    Ok(ExitCode::SUCCESS)
}
