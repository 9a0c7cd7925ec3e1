//! Can any text break the reading of Corefiles, or make it take for ever?
#![no_main]

use fairlead_dns::corefile::{self, Outside};
use libfuzzer_sys::fuzz_target;

/// Every variable is a word, and every file imports itself.
struct World;

impl Outside for World {
    fn variable(&self, name: &str) -> Option<String> {
        (name.len() < 9).then(|| format!("{name}:53"))
    }

    fn files(&self, pattern: &str, _: &str) -> Result<Vec<(String, String)>, String> {
        let text = format!("errors\nimport {pattern}\n");
        Ok(vec![("a".to_owned(), text.clone()), ("b".to_owned(), text)])
    }
}

fuzz_target!(|input: &str| {
    match corefile::parse("Corefile", input, &World) {
        Ok(settings) => assert!(!settings.servers.is_empty()),
        Err(mistakes) => assert!(!mistakes.is_empty() && mistakes.iter().all(|mistake| mistake.line > 0)),
    }
});
