//! Mode IPVS: virtual servers of the kernel's own load balancer, their addresses on a link of ours, and a table of nftables
//! for what IPVS cannot say. `docs/ipvs.md` explains who does what, and how ours are told from others'.
//!
//! The kernel tells nobody when virtual servers change, so they are read now and then: the longer that takes, the rarer.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use fairlead_kernel::ipvs as kernel;
use fairlead_kernel::link::Links;
use fairlead_plan::{FrontendKey, Plan, PlanChange};
use fairlead_program::ipvs::{At, Ipvs as Program, LINK, Marks, Op, Options, TABLE};
use ipnet::IpNet;

use crate::dataplane::Traffic;
use crate::{Counters, Dataplane, Error, Mode, Settings};
use addresses::Addresses;
use drain::Drains;
use servers::Servers;
use tables::Tables;

mod addresses;
mod drain;
mod parameters;
mod servers;
mod tables;

/// The least time between two looks at the virtual servers.
const GLANCE: Duration = Duration::from_secs(1);
/// After a look, so many times as long as it took nothing is looked at.
const REST: u32 = 200;

/// The program in the kernel, as far as we know it.
#[derive(Debug)]
pub(crate) struct Ipvs {
    servers: Servers,
    addresses: Addresses,
    tables: Tables,
    drains: Drains,
    settings: Settings,
    program: Option<Program>,
    look: Pace,
    thorough: Pace,
    tend: Pace,
}

/// When something is due that must not take too much of the time.
#[derive(Debug)]
struct Pace {
    due: Instant,
    least: Duration,
    most: Duration,
}

impl Pace {
    fn new(least: Duration, most: Duration) -> Pace {
        Pace { due: Instant::now() + least, least, most }
    }

    fn is_due(&self) -> bool {
        self.due <= Instant::now()
    }

    /// It was done, and began then.
    fn done(&mut self, began: Instant) {
        self.due = Instant::now() + (began.elapsed() * REST).clamp(self.least, self.most);
    }
}

/// Whether the kernel can do it: IPVS, and links of kind dummy.
pub(crate) fn available() -> Result<(), Error> {
    kernel::Ipvs::open()?;
    addresses::available()
}

impl Ipvs {
    /// Opens the way to IPVS in this thread's network namespace. An error if the kernel lacks it, or its scheduler.
    pub(crate) fn open(settings: &Settings) -> Result<Ipvs, Error> {
        available()?;
        let options = options(settings);
        let marks = Marks::new(options.masquerade_mark);
        let mut servers = Servers::open(marks, settings.ipvs.exclude.clone())?;
        servers.try_scheduler(&options.scheduler)?;
        let period = settings.sync_period;
        let often = GLANCE.min(period);
        Ok(Ipvs {
            servers,
            addresses: Addresses::open()?,
            tables: Tables::open(settings.sync_period)?,
            drains: Drains::default(),
            settings: settings.clone(),
            program: None,
            look: Pace::new(often, period),
            thorough: Pace::new(period, period * 10),
            tend: Pace::new(often, period),
        })
    }

    /// Does steps in their order.
    fn take(&mut self, ops: &[Op]) -> Result<(), Error> {
        for op in ops {
            match op {
                Op::AddAddress(ip) => self.addresses.add(*ip)?,
                Op::DeleteAddress(ip) => self.addresses.delete(*ip)?,
                Op::Filter(ops) => self.tables.change(ops)?,
                other => self.servers.take(other, &mut self.drains)?,
            }
        }
        Ok(())
    }

    /// Ends what drains and is idle by now.
    fn tend(&mut self) -> Result<(), Error> {
        if self.drains.is_empty() || !self.tend.is_due() {
            return Ok(());
        }
        let began = Instant::now();
        self.servers.tend(&mut self.drains)?;
        self.tend.done(began);
        Ok(())
    }

    /// What of links and virtual servers is not as it should be.
    fn look(&mut self) -> Result<Option<String>, Error> {
        let Some(program) = &self.program else { return Ok(None) };
        let wanted = program.addresses().collect();
        if let Some(wrong) = self.addresses.compare(&wanted)? {
            return Ok(Some(wrong));
        }
        let (began, due) = (Instant::now(), self.thorough.is_due());
        let wrong = self.servers.compare(&program.servers(), &self.drains, due)?;
        if due {
            self.thorough.done(began);
        }
        Ok(wrong)
    }
}

fn options(settings: &Settings) -> Options {
    Options { masquerade_mark: 1 << settings.masquerade_bit, scheduler: settings.ipvs.scheduler.clone() }
}

impl Dataplane for Ipvs {
    fn mode(&self) -> Mode {
        Mode::Ipvs
    }

    fn load(&mut self, plan: &Plan) -> Result<(), Error> {
        parameters::set(&self.settings.ipvs)?;
        self.servers.set_timeouts(&self.settings.ipvs.timeouts)?;
        let options = options(&self.settings);
        let known = self.tables.known(&options)?;
        let (program, ops) = Program::resume(plan, options, &known);
        let wanted = program.addresses().collect();
        let before = self.addresses.ensure()?;
        // Servers first, then who gets to them: as in every change.
        let gone = self.servers.make(&program.servers(), &before, &mut self.drains)?;
        self.addresses.keep(&wanted)?;
        let filter = ops.iter().find_map(|op| if let Op::Filter(ops) = op { Some(&ops[..]) } else { None });
        self.tables.load(filter.unwrap_or_default())?;
        for ip in &wanted {
            self.addresses.add(*ip)?;
        }
        self.take(&gone)?;
        self.program = Some(program);
        for pace in [&mut self.look, &mut self.thorough] {
            pace.due = Instant::now() + pace.least;
        }
        Ok(())
    }

    fn apply(&mut self, plan: &Plan, change: &PlanChange) -> Result<(), Error> {
        let Some(program) = &mut self.program else { return self.load(plan) };
        let ops = program.apply(plan, change);
        let done = self.take(&ops);
        if done.is_err() {
            // What is in the kernel is no longer what we think.
            self.program = None;
        }
        done
    }

    fn drift(&mut self, plan: &Plan) -> Result<Option<String>, Error> {
        if self.program.is_none() {
            return Ok(Some("nothing was loaded".to_owned()));
        }
        self.tend()?;
        if let Some(wrong) = self.tables.drift(&plan.node().families)? {
            return Ok(Some(wrong));
        }
        if !self.look.is_due() {
            return Ok(None);
        }
        let began = Instant::now();
        let wrong = self.look();
        self.look.done(began);
        wrong
    }

    fn counters(&mut self, _: &Plan) -> Result<Counters, Error> {
        let Some(program) = &self.program else { return Ok(Counters::default()) };
        let mut counters = Counters::default();
        for (at, counted) in self.servers.counted()? {
            if let At::Address { ip, protocol, port } = at {
                counters.frontends.insert(FrontendKey::Address { ip, protocol, port }, traffic(counted));
            }
        }
        for (port, at) in program.ports() {
            for (to, counted) in self.servers.counted_endpoints(&at)? {
                let sum = counters.endpoints.entry((port.clone(), to)).or_default();
                let more = traffic(counted);
                sum.connections += more.connections;
                sum.packets += more.packets;
                sum.bytes += more.bytes;
            }
        }
        Ok(counters)
    }
}

fn traffic(counted: kernel::Counted) -> Traffic {
    Traffic { connections: counted.connections, packets: counted.packets, bytes: counted.bytes, back: None }
}

/// Whether an address is in ranges that are others'.
fn is_excluded(ip: IpAddr, exclude: &[IpNet]) -> bool {
    exclude.iter().any(|range| range.contains(&ip))
}

/// Removes our virtual servers, link and tables, and says what there was.
pub(crate) fn remove() -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    let mut links = Links::open()?;
    let link = links.find(LINK)?;
    let addresses = match &link {
        Some(link) => links.addresses(link.index)?.into_iter().map(|prefix| prefix.address).collect(),
        None => Default::default(),
    };
    match Servers::open(Marks::any(), Vec::new()) {
        Ok(mut servers) => {
            let count = servers.remove(&addresses)?;
            removed.extend((count > 0).then(|| format!("{count} virtual servers of IPVS")));
        }
        Err(Error::Kernel(fairlead_kernel::Error::Absent(_))) => {}
        Err(error) => return Err(error),
    }
    if let Some(link) = link {
        links.delete(link.index)?;
        removed.push(format!("link {LINK} with {} addresses", addresses.len()));
    }
    removed.extend(tables::remove()?.into_iter().map(|family| format!("table {family} {TABLE} of nftables")));
    Ok(removed)
}
