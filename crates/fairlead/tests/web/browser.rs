//! A small client of WebDriver: starts chromedriver on a machine, and does there what a person would do.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use fairlead_testkit::need;
use serde_json::{Value, json};

use super::machine::Machine;

/// Where chromedriver listens; every machine has a loopback of its own.
const PORT: u16 = 9515;
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(90);
/// The name WebDriver gives to references to elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

pub(crate) struct Browser<'a> {
    machine: &'a Machine,
    driver: Child,
    session: String,
}

/// Opens a browser on a machine.
pub(crate) fn browser(machine: &Machine) -> Browser<'_> {
    let mut command = Command::new(need::program("chromedriver").unwrap());
    command.arg(format!("--port={PORT}")).env("TMPDIR", machine.path("")).env("HOME", machine.path(""));
    // A group of its own: the browser ends with it whatever happens.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let driver = machine.desk.run(|| command.spawn()).unwrap().unwrap();
    let mut browser = Browser { machine, driver, session: String::new() };
    machine.wait("chromedriver answers", || browser.call("GET", "/status", &Value::Null).is_ok());
    let arguments =
        ["--headless=new", "--no-sandbox", "--ignore-certificate-errors", "--disable-dev-shm-usage", "--disable-gpu"];
    let options = json!({"binary": need::program("chromium").unwrap(), "args": arguments});
    let wanted = json!({"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}});
    let made = browser.call("POST", "/session", &json!({"capabilities": {"alwaysMatch": wanted}})).unwrap();
    browser.session = format!("/session/{}", made["sessionId"].as_str().unwrap());
    browser.size(1440, 900);
    browser.scheme("light");
    browser.note_rows();
    browser
}

impl Browser<'_> {
    /// One request to chromedriver: the value it answers, or what it says is wrong.
    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let text = if method == "POST" { body.to_string() } else { String::new() };
        let asked = || -> std::io::Result<Vec<u8>> {
            let mut stream = TcpStream::connect(("127.0.0.1", PORT))?;
            stream.set_read_timeout(Some(LIMIT))?;
            let length = text.len();
            write!(stream, "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")?;
            write!(stream, "Content-Length: {length}\r\nConnection: close\r\n\r\n{text}")?;
            answer(BufReader::new(stream))
        };
        let bytes = self.machine.desk.run(asked).unwrap().map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        match value["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["value"]["message"].as_str().unwrap_or_default())),
            None => Ok(value["value"].clone()),
        }
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value) -> Value {
        let path = format!("{}{path}", self.session);
        self.call("POST", &path, body).unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    /// Goes to an address.
    #[track_caller]
    pub(crate) fn open(&self, url: &str) {
        self.post("/url", &json!({"url": url}));
    }

    /// Goes to a view of the page that is open, as a link would.
    #[track_caller]
    pub(crate) fn go(&self, view: &str) {
        self.js(&format!("location.hash = {}", json!(view)));
    }

    /// Runs a script in the page; what it returns.
    #[track_caller]
    pub(crate) fn js(&self, script: &str) -> Value {
        self.post("/execute/sync", &json!({"script": script, "args": []}))
    }

    /// What a script returns, as a text.
    #[track_caller]
    pub(crate) fn text(&self, script: &str) -> String {
        match self.js(&format!("return {script}")) {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }

    /// What is written in the first element a selector finds.
    #[track_caller]
    pub(crate) fn read(&self, selector: &str) -> String {
        self.text(&format!("document.querySelector({})?.innerText ?? ''", json!(selector)))
    }

    /// Has every page note when its first row was there.
    fn note_rows(&self) {
        let source = "new MutationObserver((_, me) => { if (!document.querySelector('tr[data-key]')) return; me.disconnect(); \
                      performance.mark('rows'); }).observe(document, {childList: true, subtree: true})";
        self.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({"source": source}));
    }

    /// When the page was first painted, and when its first row was there, since it was asked for.
    pub(crate) fn painted(&self) -> String {
        self.until("it is painted", "performance.getEntriesByName('first-contentful-paint').length");
        self.text(
            "['first-contentful-paint', 'rows'].map((name) => `${name} after \
             ${Math.round(performance.getEntriesByName(name)[0]?.startTime)} ms`).join(', ')",
        )
    }

    /// From now on the browser does not get what fits.
    pub(crate) fn block(&self, urls: &[&str]) {
        self.devtools("Network.enable", &json!({}));
        self.devtools("Network.setBlockedURLs", &json!({"urls": urls}));
    }

    #[track_caller]
    fn find(&self, selector: &str) -> String {
        let found = self.post("/element", &json!({"using": "css selector", "value": selector}));
        found[ELEMENT].as_str().unwrap().to_owned()
    }

    /// Clicks where the first such element is, once there is one.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str) {
        self.sees(selector);
        for _ in 0..10 {
            let path = format!("{}/element/{}/click", self.session, self.find(selector));
            match self.call("POST", &path, &json!({})) {
                Ok(_) => return,
                // It was drawn anew in between.
                Err(error) if error.starts_with("stale element reference") => {}
                Err(error) => panic!("{selector}: {error}"),
            }
        }
        panic!("{selector} does not stay");
    }

    /// Replaces what is in a field.
    #[track_caller]
    pub(crate) fn fill(&self, selector: &str, text: &str) {
        self.sees(selector);
        let element = self.find(selector);
        self.post(&format!("/element/{element}/clear"), &json!({}));
        self.post(&format!("/element/{element}/value"), &json!({"text": text}));
    }

    /// Presses keys, one after another; those without a letter have the names that WebDriver gives them.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        let press = |key: char| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})];
        let actions: Vec<Value> = keys.chars().flat_map(press).collect();
        self.post("/actions", &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}));
    }

    /// Waits until a script returns something true.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, script: &str) {
        let until = Instant::now() + LIMIT;
        while self.js(&format!("return Boolean({script})")) != json!(true) {
            if Instant::now() > until {
                self.picture("failed");
                let (page, console) = (self.read("body"), self.console());
                panic!("not in {LIMIT:?}: {what}\nthe page:\n{page}\nthe console: {console:?}\n{}", self.machine.log());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until there is such an element to be seen.
    #[track_caller]
    pub(crate) fn sees(&self, selector: &str) {
        self.until(selector, &format!("document.querySelector({})?.getClientRects().length", json!(selector)));
    }

    /// Waits until such an element has a text in it.
    #[track_caller]
    pub(crate) fn says(&self, selector: &str, text: &str) {
        let (place, wanted) = (json!(selector), json!(text));
        self.until(
            &format!("{selector} says {text:?}"),
            &format!("[...document.querySelectorAll({place})].some((one) => one.innerText.includes({wanted}))"),
        );
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}));
    }

    /// The size of the screen.
    pub(crate) fn size(&self, width: u32, height: u32) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700});
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
    }

    /// Whether the system is `light` or `dark`.
    pub(crate) fn scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Keeps a picture of what is to be seen.
    pub(crate) fn picture(&self, name: &str) {
        let picture = self.call("GET", &format!("{}/screenshot", self.session), &Value::Null).unwrap();
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture.as_str().unwrap()).unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// What the console has said since it was last asked that is worse than a remark: mistakes, and breaches of the policy.
    pub(crate) fn console(&self) -> Vec<String> {
        let said = self.post("/se/log", &json!({"type": "browser"}));
        let bad =
            said.as_array().unwrap().iter().filter(|line| line["level"] == "SEVERE" || line["level"] == "WARNING");
        bad.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Browser<'_> {
    fn drop(&mut self) {
        let _ = self.call("DELETE", &self.session, &Value::Null);
        // With it everything it has started.
        let line = format!("kill -9 -{}", self.driver.id());
        let _ = Command::new("sh").args(["-c", &line]).stderr(Stdio::null()).status();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The body of an answer.
fn answer(mut stream: BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}
