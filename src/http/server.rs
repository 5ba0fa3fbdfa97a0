//! Listening: connections within their bounds, each served until it ends or the service does.

use super::door::{Door, Peer};
use super::{guard, routes, tls};
use crate::access::Access;
use crate::deployment::Http;
use crate::error::Error;
use crate::space::Running;
use crate::web::Memory;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// The most connections beyond the bound that are heard, and only where they restrict.
const HEARD_MAX: usize = 64;
/// How long a connection may take to say what it wants, again before each request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long the connections that are left may take to come to their end.
const STOPS_WITHIN: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The service, listening.
pub struct Server {
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    door: Arc<Door>,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("door", &self.door).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens where the deployment says; nothing is answered before [`Server::serve`].
    ///
    /// # Errors
    /// An address that is taken; TLS files or secrets that cannot be used.
    pub async fn bind(settings: &Http, space: Arc<Running>, store: &Path) -> Result<Self, Error> {
        let acceptor = settings.tls.as_ref().map(tls::acceptor).transpose()?;
        let listening = format!("listening on {}", settings.listen);
        let listener = TcpListener::bind(settings.listen).await.map_err(Error::io(listening))?;
        let address = listener.local_addr().map_err(Error::io("asking for the address"))?;
        let (stop, stopping) = watch::channel(false);
        let door =
            Arc::new(Door::new(space, Access::of(store), Memory::of(store), settings.clone(), address, stopping)?);
        Ok(Self { listener, acceptor, door, stop })
    }

    /// What stands behind it.
    #[must_use]
    pub const fn door(&self) -> &Arc<Door> {
        &self.door
    }

    /// Where it listens.
    ///
    /// # Errors
    /// What the system says.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `end` resolves; then takes no more connections and lets those that are open come to their end.
    pub async fn serve(self, end: impl Future<Output = ()>) {
        let router = router(&self.door);
        let graceful = GracefulShutdown::new();
        let served = Arc::new(Semaphore::new(self.door.settings.connections_max));
        let heard = Arc::new(Semaphore::new(HEARD_MAX));
        let mut connections = JoinSet::new();
        tokio::pin!(end);
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut end => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let settings = &self.door.settings;
            if !settings.trusted_proxies.is_empty()
                && self.acceptor.is_none()
                && !settings.trusted_proxies.contains(&address.ip())
            {
                tracing::warn!(%address, "a connection that comes from no trusted proxy was closed");
                continue;
            }
            let (place, crowded) = match Arc::clone(&served).try_acquire_owned() {
                Ok(place) => (place, false),
                Err(_) => match Arc::clone(&heard).try_acquire_owned() {
                    Ok(place) => (place, true),
                    Err(_) => continue,
                },
            };
            let peer = Peer { address: address.ip(), crowded };
            let connection = Connection { stream, peer, acceptor: self.acceptor.clone(), router: router.clone() };
            let watcher = graceful.watcher();
            connections.spawn(async move {
                connection.serve(watcher).await;
                drop(place);
            });
        }
        drop(self.listener);
        self.stop.send_replace(true);
        if tokio::time::timeout(STOPS_WITHIN, graceful.shutdown()).await.is_err() {
            tracing::warn!("connections that did not come to their end were cut off");
        }
        connections.shutdown().await;
    }
}

/// Everything that is served: the API and the pages.
fn router(door: &Arc<Door>) -> Router {
    let outermost = {
        let door = Arc::clone(door);
        move |request, next| guard::outermost(Arc::clone(&door), request, next)
    };
    routes::api()
        .merge(crate::web::pages())
        .merge(crate::mcp::served(door))
        .fallback(|| async {
            super::Problem::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address").into_response()
        })
        .layer(middleware::from_fn(outermost))
        .with_state(Arc::clone(door))
}

struct Connection {
    stream: TcpStream,
    peer: Peer,
    acceptor: Option<TlsAcceptor>,
    router: Router,
}

impl Connection {
    async fn serve(self, watcher: hyper_util::server::graceful::Watcher) {
        let Self { stream, peer, acceptor, router } = self;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        match acceptor {
            None => speak(stream, peer, router, watcher).await,
            Some(acceptor) => match tokio::time::timeout(HEAD_WITHIN, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => speak(stream, peer, router, watcher).await,
                Ok(Err(error)) => tracing::debug!(%error, "a connection does not speak TLS"),
                Err(_) => tracing::debug!("a connection was too slow to speak TLS"),
            },
        }
    }
}

async fn speak<S>(stream: S, peer: Peer, router: Router, watcher: hyper_util::server::graceful::Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(peer);
        async move { router.call(request).await }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(!peer.crowded)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection broke off");
    }
}
