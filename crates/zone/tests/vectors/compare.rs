//! Asks what a case asks and says what differs, by the rules of the vectors.

use fairlead_zone::message::{Message, Record};
use fairlead_zone::{Name, rtype};
use serde_json::Value;

use crate::server::Server;
use crate::text::{canonical, show, to_class, to_type};

const ID: u16 = 0x4a17;

/// What differs between the recorded answer and ours.
pub(crate) fn check(server: &Server<'_>, case: &Value) -> Vec<String> {
    let question = &case["q"];
    if let Some(pipeline) = question["pipeline"].as_array() {
        let expect = case["expect"]["many"].as_array().unwrap();
        let one = |(question, expect): (&Value, &Value)| {
            let case = serde_json::json!({"q": question, "expect": expect});
            let tcp = Some(true);
            check_one(server, &case, &encode(question), tcp)
        };
        return pipeline.iter().zip(expect).flat_map(one).collect();
    }
    if let Some(raw) = question["raw"].as_str() {
        let raw = unhex(raw);
        return match question["proto"] == "tcp" {
            false => check_one(server, case, &raw, None),
            true => frame(&raw).map_or_else(Vec::new, |frame| check_one(server, case, frame, None)),
        };
    }
    check_one(server, case, &encode(question), None)
}

/// The first message of a TCP stream; none if it is not complete, which is for sockets to deal with.
fn frame(raw: &[u8]) -> Option<&[u8]> {
    let (len, rest) = raw.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(*len)))
}

fn check_one(server: &Server<'_>, case: &Value, bytes: &[u8], tcp: Option<bool>) -> Vec<String> {
    let (question, expect) = (&case["q"], &case["expect"]);
    let tcp = tcp.unwrap_or(question["proto"] == "tcp");
    let out = match (server.answer(bytes, tcp), expect["none"] == true) {
        (None, true) => return Vec::new(),
        (None, false) => return vec!["no answer".to_owned()],
        (Some(_), true) => return vec!["an answer, where there is none".to_owned()],
        (Some(out), false) => out,
    };
    let message = match Message::parse(&out) {
        Ok(message) => message,
        Err(error) => return vec![error.to_string()],
    };
    let mut differences = Vec::new();
    let mut same = |what: &str, ours: String, theirs: String| {
        let ignored = case["ignore"].as_array().is_some_and(|list| list.iter().any(|field| field == what));
        if ours != theirs && !ignored {
            differences.push(format!("{what}: {ours}, not {theirs}"));
        }
    };
    let flag = |bit: u16| u8::from(message.flags & bit != 0).to_string();
    same("rcode", message.rcode.as_str().to_owned(), expect["rcode"].as_str().unwrap().to_owned());
    same("qr", flag(0x8000), "1".to_owned());
    same("aa", flag(0x400), expect["aa"].to_string());
    same("tc", flag(0x200), expect["tc"].to_string());
    same("ra", flag(0x80), expect["ra"].to_string());
    same("id", out[..2].escape_ascii().to_string(), bytes[..2].escape_ascii().to_string());
    let edns = message.edns.map(|edns| u8::from(edns.dnssec_ok).to_string());
    let theirs = expect["edns"].as_object().map(|edns| edns["do"].to_string());
    same("edns", format!("{edns:?}"), format!("{theirs:?}"));
    if question["raw"].is_null() {
        let end = 12 + question_name(question).wire().len() + 4;
        let ours = out.get(12..end).unwrap_or_default().escape_ascii().to_string();
        same("question", ours, bytes[12..end].escape_ascii().to_string());
        same("rd", (out[2] & 1).to_string(), (bytes[2] & 1).to_string());
        same("opcode", (out[2] & 0x78).to_string(), (bytes[2] & 0x78).to_string());
        let size = question["edns"]["size"].as_u64().map_or(512, |size| size.max(512));
        same("fits", (tcp || out.len() as u64 <= size).to_string(), "true".to_owned());
    }
    for (section, records) in
        [("answer", &message.answer), ("authority", &message.authority), ("additional", &message.additional)]
    {
        differences.extend(check_section(case, section, records));
    }
    let first = message.answer.iter().position(|record| record.rtype != rtype::CNAME).unwrap_or(usize::MAX);
    if message.answer.iter().skip(first).any(|record| record.rtype == rtype::CNAME) {
        differences.push("an alias after the records of its target".to_owned());
    }
    differences
}

fn check_section(case: &Value, section: &str, records: &[Record]) -> Vec<String> {
    let cut = case["expect"]["tc"] == 1;
    let full = if cut && case["full"].is_object() { &case["full"] } else { &case["expect"] };
    let mut theirs: Vec<String> =
        full[section].as_array().unwrap().iter().map(|text| canonical(text.as_str().unwrap())).collect();
    let mut ours: Vec<String> = records.iter().map(show).collect();
    if case["ttl"] == "max" {
        let ttl = |text: &String| text.split(' ').nth(1).unwrap().parse::<u32>().unwrap();
        let most = theirs.iter().map(ttl).max().unwrap_or(0);
        if ours.iter().any(|text| ttl(text) > most) {
            return vec![format!("{section}: a TTL above {most}")];
        }
        let mask = |text: &mut String| *text = text.replacen(&format!(" {} ", ttl(text)), " * ", 1);
        ours.iter_mut().for_each(mask);
        theirs.iter_mut().for_each(mask);
    }
    ours.sort();
    theirs.sort();
    let fine = if cut {
        ours.iter().all(|record| theirs.contains(record)) && ours.windows(2).all(|two| two[0] != two[1])
    } else {
        ours == theirs
    };
    if fine { Vec::new() } else { vec![format!("{section}:\n      {ours:?}, not\n      {theirs:?}")] }
}

fn question_name(question: &Value) -> Name {
    question["name"].as_str().unwrap().parse().unwrap()
}

/// The query a case describes.
fn encode(question: &Value) -> Vec<u8> {
    let mut flags = match question["opcode"].as_str().unwrap_or("QUERY") {
        "QUERY" => 0,
        "IQUERY" => 1 << 11,
        "STATUS" => 2 << 11,
        "NOTIFY" => 4 << 11,
        "UPDATE" => 5 << 11,
        other => panic!("{other}"),
    };
    let set = question["flags"]
        .as_array()
        .map_or(vec!["rd"], |list| list.iter().map(|flag| flag.as_str().unwrap()).collect());
    for flag in set {
        flags |= match flag {
            "qr" => 0x8000,
            "aa" => 0x400,
            "tc" => 0x200,
            "rd" => 0x100,
            "ra" => 0x80,
            "z" => 0x40,
            "ad" => 0x20,
            "cd" => 0x10,
            other => panic!("{other}"),
        };
    }
    let edns = question["edns"].as_object();
    let (rtype, class) = (question["type"].as_str().unwrap(), question["class"].as_str().unwrap_or("IN"));
    let mut out = Vec::new();
    let push = |number: u16, out: &mut Vec<u8>| out.extend_from_slice(&number.to_be_bytes());
    [ID, flags, 1, 0, 0, u16::from(edns.is_some())].into_iter().for_each(|number| push(number, &mut out));
    out.extend_from_slice(question_name(question).wire());
    push(to_type(rtype), &mut out);
    push(to_class(class), &mut out);
    if let Some(edns) = edns {
        let number = |field: &str| edns.get(field).and_then(Value::as_u64);
        let mut options = Vec::new();
        for option in edns.get("options").and_then(Value::as_array).into_iter().flatten() {
            let data = unhex(option[1].as_str().unwrap());
            push(u16::try_from(option[0].as_u64().unwrap()).unwrap(), &mut options);
            push(u16::try_from(data.len()).unwrap(), &mut options);
            options.extend(data);
        }
        out.extend_from_slice(&[0, 0, 41]);
        push(u16::try_from(number("size").unwrap_or(1232)).unwrap(), &mut out);
        let dnssec = if edns.get("do") == Some(&Value::Bool(true)) { 0x80 } else { 0 };
        out.extend_from_slice(&[0, u8::try_from(number("version").unwrap_or(0)).unwrap(), dnssec, 0]);
        push(u16::try_from(options.len()).unwrap(), &mut out);
        out.extend(options);
    }
    out
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}
