//! `fairlead shim` as a program of its own, for the tests of this crate.

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "shim").collect();
    std::process::exit(fairlead_pods::shim::main(&arguments));
}
