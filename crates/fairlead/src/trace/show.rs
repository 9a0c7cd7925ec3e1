//! Answers as text for people, and as JSON for programs.

use std::fmt::Write;
use std::net::SocketAddr;

use fairlead_plan::{Dnat, Ingress, RejectWith, Verdict};
use fairlead_proxy::trace::Answer;
use fairlead_proxy::trace::live::{Reply, Report};
use serde_json::{Value, json};

/// For people.
pub(super) fn text(answer: &Answer, report: Option<&Report>) -> String {
    let mut text = String::new();
    // Writing into a String does not fail.
    let _ = write(&mut text, answer, report);
    text
}

fn write(text: &mut String, answer: &Answer, report: Option<&Report>) -> std::fmt::Result {
    let packet = &answer.packet;
    let to = SocketAddr::new(packet.dst, packet.port);
    let how = match &packet.from {
        Ingress::Output => "sent by a process of it".to_owned(),
        Ingress::Interface(name) => format!("coming in on {name}"),
    };
    writeln!(text, "{} from {} to {to}, on Node {}, {how}", packet.protocol, packet.src, answer.node)?;
    section(text, "What should happen", answer.decision.steps.iter())?;
    answer.notes.iter().try_for_each(|note| writeln!(text, "  note: {note}"))?;
    writeln!(text, "  => {}", answer.decision.verdict)?;
    if !answer.way.is_empty() {
        section(text, &format!("What the rules of mode {} do", answer.mode), answer.way.iter())?;
    }
    report.map_or(Ok(()), |report| write_report(text, report))
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = impl std::fmt::Display>) -> std::fmt::Result {
    writeln!(text, "\n{title}:")?;
    for line in lines {
        writeln!(text, "  {line}")?;
    }
    Ok(())
}

fn write_report(text: &mut String, report: &Report) -> std::fmt::Result {
    section(text, &format!("What the kernel did to a packet from {}", report.from), report.steps.iter())?;
    if report.steps.is_empty() {
        writeln!(text, "  no rule of nftables met it")?;
    }
    if let Some(flow) = &report.flow {
        let at = SocketAddr::new(flow.reply.source, flow.reply.source_port);
        let back = flow.reply.destination;
        let masqueraded = if back == flow.original.source { String::new() } else { format!(", from {back}") };
        writeln!(text, "  its connection leads to {at}{masqueraded}")?;
    } else if let Some((from, to)) = report.last_seen {
        writeln!(text, "  it was last seen on its way from {from} to {to}")?;
    }
    match report.ended_by() {
        Some(step) => writeln!(text, "  => {}, because of {} {}", report.answer, step.table, step.chain),
        None if report.answer == Reply::Refused => {
            writeln!(text, "  => {} by no rule of nftables: nobody listens where it went", report.answer)
        }
        None => writeln!(text, "  => {}", report.answer),
    }
}

/// For programs.
pub(super) fn json(answer: &Answer, report: Option<&Report>) -> Value {
    let packet = &answer.packet;
    let interface = match &packet.from {
        Ingress::Output => Value::Null,
        Ingress::Interface(name) => json!(name),
    };
    let mut value = json!({
        "node": answer.node,
        "packet": {
            "source": packet.src, "destination": packet.dst, "port": packet.port,
            "protocol": packet.protocol.as_str(), "interface": interface,
        },
        "verdict": verdict(&answer.decision.verdict),
        "reasons": answer.decision.steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "notes": answer.notes,
        "mode": answer.mode.as_str(),
        "rules": answer.way,
    });
    if let Some(report) = report {
        value["live"] = live(report);
    }
    value
}

fn verdict(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::NotOurs => json!({"action": "none"}),
        Verdict::Drop => json!({"action": "drop"}),
        Verdict::Reject(RejectWith::TcpReset) => json!({"action": "reject", "with": "tcp-reset"}),
        Verdict::Reject(RejectWith::PortUnreachable) => json!({"action": "reject", "with": "port-unreachable"}),
        Verdict::Dnat(dnat) => forward(dnat),
    }
}

fn forward(dnat: &Dnat) -> Value {
    let endpoint = |it: &fairlead_plan::Candidate| json!({"address": it.endpoint.to_string(), "weight": it.endpoint.weight, "masquerade": it.snat});
    let endpoints: Vec<Value> = dnat.candidates.iter().map(endpoint).collect();
    let service = dnat.port.service.to_string();
    json!({
        "action": "forward", "service": service, "portName": &*dnat.port.name, "policy": dnat.scope.to_string(),
        "endpoints": endpoints, "affinitySeconds": dnat.affinity,
    })
}

fn live(report: &Report) -> Value {
    let step = |it: &fairlead_proxy::trace::live::Told| json!({"table": it.table, "chain": it.chain, "what": it.what});
    let flow = report.flow.as_ref().map(|flow| {
        let at = SocketAddr::new(flow.reply.source, flow.reply.source_port);
        json!({"endpoint": at.to_string(), "seenAs": flow.reply.destination})
    });
    json!({
        "from": report.from.to_string(),
        "answer": report.answer.to_string(),
        "steps": report.steps.iter().map(step).collect::<Vec<_>>(),
        "endedBy": report.ended_by().map(step),
        "lastSeen": report.last_seen.map(|(from, to)| json!({"from": from.to_string(), "to": to.to_string()})),
        "connection": flow,
    })
}
