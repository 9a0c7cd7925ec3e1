//! The past as people read it: a day, a time, an object, and under it what changed.

use fairlead_api::Look;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::objects::table::{harmless, one_line};
use crate::objects::yaml;
use crate::paint::{Paint, Tone};

/// What happened.
pub(super) fn timeline(answer: &Value, whose: Option<&str>, zone: &TimeZone, paint: Paint) -> String {
    let (mut out, mut day) = (String::new(), String::new());
    for item in answer.list("items") {
        let (date, time) = date_and_time(item.text("at"), zone);
        if date != day {
            out.push_str(&format!("{}\n", paint.tone(Tone::Faint, &date)));
            day = date;
        }
        out.push_str(&entry(item, &time, paint));
    }
    if answer.list("items").is_empty() {
        out.push_str(&format!(
            "Nothing has happened{}.\n",
            whose.map(|whose| format!(" to {whose}")).unwrap_or_default()
        ));
    }
    out.push_str(&paint.tone(Tone::Faint, &kept(answer.at("kept"), zone)));
    out.push('\n');
    out
}

/// From when on it is kept.
fn kept(kept: &Value, zone: &TimeZone) -> String {
    match kept.text_opt("from") {
        Some(from) => {
            let (date, time) = date_and_time(from, zone);
            format!("{} changes are kept, since {date} {}", kept.int("revisions"), seconds(&time))
        }
        None => "nothing is kept yet".to_owned(),
    }
}

fn entry(item: &Value, time: &str, paint: Paint) -> String {
    let lines = item.list("lines").iter().filter_map(Value::as_str);
    // A time that is a guess says so.
    let time = format!("{}{time}", if item.flag("late") { '~' } else { ' ' });
    let change = item.text("change");
    if change == "gap" {
        let words: Vec<&str> = lines.collect();
        return format!("{time}  {}\n", paint.tone(Tone::Fair, &one_line(&words.join(" "))));
    }
    let tone = match change {
        "created" => Tone::Good,
        "deleted" => Tone::Bad,
        _ => Tone::Fair,
    };
    let by = match item.text("by") {
        "" => String::new(),
        by => paint.tone(Tone::Faint, &format!("  by {}", one_line(by))),
    };
    let what = paint.tone(Tone::Strong, &one_line(&format!("{} {}", item.text("kind"), place(item))));
    // Events are not changed; they happen.
    let change = if change == "event" { String::new() } else { format!(" {}", paint.tone(tone, change)) };
    let mut out = format!("{time}  {what}{change}{by}\n");
    for line in lines {
        out.push_str(&format!("                 {}\n", one_line(line)));
    }
    out
}

fn place(item: &Value) -> String {
    match item.text("namespace") {
        "" => item.text("name").to_owned(),
        namespace => format!("{namespace}/{}", item.text("name")),
    }
}

/// What was there.
pub(super) fn moment(answer: &Value, zone: &TimeZone, paint: Paint) -> String {
    let (date, time) = date_and_time(answer.text("at"), zone);
    let mut out = paint.tone(Tone::Strong, &format!("{} at {date} {}", answer.text("subject"), seconds(&time)));
    out.push('\n');
    if let Some(gap) = answer.text_opt("gap") {
        out.push_str(&format!("{}\n", paint.tone(Tone::Fair, &one_line(gap))));
    }
    let object = answer.at("object");
    if object.is_null() {
        out.push_str("It was not there.\n");
        return out;
    }
    if answer.text("subject").starts_with("svc/") {
        out.push_str(&rotation(answer, paint));
    }
    out.push_str(&format!(
        "\n{}\n",
        paint.tone(Tone::Faint, &format!("# resourceVersion {}", answer.text("revision")))
    ));
    out.push_str(&harmless(&yaml::print(object)));
    out
}

/// Which endpoints got connections, and which did not, and why.
fn rotation(answer: &Value, paint: Paint) -> String {
    let endpoints = answer.list("endpoints");
    let chosen = endpoints.iter().filter(|one| one.flag("inRotation")).count();
    let mut out = format!("\nin rotation: {chosen} of {} endpoints\n", endpoints.len());
    for one in endpoints {
        let (mark, tone) = if one.flag("inRotation") { ("+", Tone::Good) } else { ("-", Tone::Bad) };
        out.push_str(&format!("  {} {}\n", paint.tone(tone, mark), endpoint(one)));
    }
    let pods = answer.list("pods");
    if !pods.is_empty() {
        out.push_str("\npods:\n");
        pods.iter().for_each(|one| out.push_str(&format!("  {}\n", pod(one))));
    }
    out
}

/// `10.244.0.7:9376  Pod web-2  on n1  ready`
pub(super) fn endpoint(one: &Value) -> String {
    let address = match one.text("address") {
        six if six.contains(':') => format!("[{six}]"),
        four => four.to_owned(),
    };
    let ports: Vec<String> = one.list("ports").iter().map(|port| port.int("port").to_string()).collect();
    let place = if ports.is_empty() { address } else { format!("{address}:{}", ports.join(",")) };
    let on = if one.text("node").is_empty() { String::new() } else { format!("on {}", one.text("node")) };
    words(&[&place, one.text("target"), &on, one.text("why")])
}

/// `web-2  10.244.0.7  on n1  Running, ready`
pub(super) fn pod(one: &Value) -> String {
    let on = if one.text("node").is_empty() { String::new() } else { format!("on {}", one.text("node")) };
    let ready = if one.flag("ready") { "ready".to_owned() } else { format!("not ready {}", one.text("why")) };
    let going = if one.flag("terminating") { ", terminating" } else { "" };
    let state = format!("{}, {}{going}", one.text("phase"), ready.trim_end());
    words(&[one.text("name"), one.text("address"), &on, &state])
}

fn words(words: &[&str]) -> String {
    let said = words.iter().filter(|word| !word.is_empty()).copied();
    one_line(&said.collect::<Vec<_>>().join("  "))
}

/// `2026-11-16` and `14:03:07.120`, where the reader is.
fn date_and_time(at: &str, zone: &TimeZone) -> (String, String) {
    match at.parse::<Timestamp>() {
        Ok(at) => {
            let there = at.to_zoned(zone.clone());
            (there.date().to_string(), there.strftime("%H:%M:%S%.3f").to_string())
        }
        Err(_) => (String::new(), at.to_owned()),
    }
}

/// `14:03:07`
fn seconds(time: &str) -> &str {
    time.split('.').next().unwrap_or(time)
}
