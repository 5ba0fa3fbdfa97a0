//! Running a deployment unattended, with its door open.

use super::exit::Exit;
use super::init::now;
use super::run::{attending, started};
use super::talk::Talk;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::http::Server;
use crate::notify::Notifier;
use crate::request;
use crate::space::Space;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

pub(super) async fn serve(directory: &Path, talk: Talk) -> Result<Exit, Error> {
    let deployment = Deployment::load(directory, &now())?;
    let live = started(&deployment, talk).await?;
    let server = match Server::bind(&deployment.http, Arc::clone(live.space()), &deployment.store).await {
        Ok(server) => server,
        Err(error) => {
            live.stop().await?;
            return Err(error);
        }
    };
    announce(&server, directory, talk)?;
    let notifier = Notifier::open(&deployment.notify, &deployment.store, &server.door().origin)?;
    let telling = tokio::spawn(notifier.run(Arc::clone(live.space())));
    let mut stop = attending().map_err(Error::io("waiting for a signal"))?;
    let end = async {
        stop.asked().await;
        talk.say("stopping: no more requests, what is under way comes to its end");
    };
    server.serve(end).await;
    telling.abort();
    live.stop().await?;
    talk.say("stopped");
    Ok(Exit::Ok)
}

/// Says where it listens, how to sign in and what to do next.
fn announce(server: &Server, directory: &Path, talk: Talk) -> Result<(), Error> {
    let door = server.door();
    let address = server.address().map_err(Error::io("asking for the address"))?;
    let view = door.space.view();
    let waiting = request::waiting(&view);
    let place = directory.display();
    let user = request::default_identity(&view);
    let signed_in = !door.access.held()?.sessions.is_empty();
    let link = match signed_in {
        true => None,
        false => Some(format!("{}/signin?link={}", door.origin, door.access.new_link(&user, &door.now())?)),
    };
    if talk.json {
        let told = json!({ "address": address, "url": door.origin, "sign_in": link, "packets_waiting": waiting });
        talk.put(&told.to_string());
    }
    talk.say(&format!("serving {place} on {address}, reached as {}", door.origin));
    match &link {
        Some(link) => {
            talk.say(&format!("  sign in as {user}, within a quarter of an hour and once: {link}"));
        }
        None => talk.say(&format!("  sign in on another device: closer -C {place} signin")),
    }
    talk.say(&format!("  The Bench: {} ({waiting} waiting)", door.origin));
    talk.say(&format!("  a token for programs: closer -C {place} token new --scope read"));
    talk.say("  stop: SIGTERM or Ctrl-C");
    Ok(())
}
