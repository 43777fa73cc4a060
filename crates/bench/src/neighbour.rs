//! How much the load of others delays small requests of one client: on the same server, beside the same
//! load on another process, and alone. The second shows what is due to the machine.

use crate::client::Failure;
use crate::load::{Plan, PreparedServer};
use crate::report::{Figures, HEADINGS, median};
use crate::servers::Server;
use crate::workload::{Parts, Settings, WorkloadName};

/// Connections of the measured client.
const CONNECTIONS: usize = 2;
const SMALL: Settings =
    Settings { payload_bytes: 4096, objects: 1000, parts: Parts { count: 1, bytes: 1 } };

pub struct Neighbours {
    pub workload: WorkloadName,
    pub settings: Settings,
    pub plan: Plan,
}

/// Returns how many operations failed.
pub fn measure(
    here: &Server,
    elsewhere: &Server,
    neighbours: &Neighbours,
    rounds: usize,
) -> Result<u64, Failure> {
    let Neighbours { workload, settings, plan } = neighbours;
    let watched = PreparedServer::prepare(here.account.clone(), WorkloadName::GetBlob, SMALL)?;
    let same = PreparedServer::prepare(here.account.clone(), *workload, *settings)?;
    let other = PreparedServer::prepare(elsewhere.account.clone(), *workload, *settings)?;
    let watched_plan = Plan { connections: CONNECTIONS, threads: 1, ..*plan };
    let sides =
        [("alone", None), ("beside another", Some(&other)), ("beside the same", Some(&same))];
    let mut figures = sides.map(|_| Vec::new());
    println!("round  {:15}{HEADINGS}", "");
    for round in 1..=rounds {
        for ((name, loaded), figures) in sides.iter().zip(&mut figures) {
            let tally = std::thread::scope(|scope| {
                if let Some(loaded) = loaded {
                    scope.spawn(|| loaded.run(*plan));
                }
                watched.run(watched_plan)
            });
            let measured = Figures::of(&tally);
            println!("{round:>5}  {name:15}{measured}");
            figures.push(measured);
        }
    }
    let p99 = figures
        .each_ref()
        .map(|runs| median(runs.iter().map(|run| run.p99_milliseconds).collect()));
    println!(
        "p99 beside the load on the same process / on another: {:.2} ({:.3} ms / {:.3} ms; alone {:.3} ms)",
        p99[2] / p99[1],
        p99[2],
        p99[1],
        p99[0],
    );
    for target in [watched, same, other] {
        target.clean_up()?;
    }
    Ok(figures.iter().flatten().map(|run| run.errors).sum())
}
