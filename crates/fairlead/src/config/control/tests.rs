use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: ControlFlags,
}

fn resolve(arguments: &[&str]) -> anyhow::Result<Control> {
    let line = Line::try_parse_from([&["control"], arguments].concat())?;
    Control::resolve(&line.flags)
}

#[test]
fn what_every_cluster_needs_runs_and_one_process_acts_unless_told_otherwise() {
    let control = resolve(&[]).expect("defaults");
    assert_eq!(control.options.choice, Choice::parse("*").expect("a star"));
    assert_eq!(control.lease, Some(("kube-system".to_owned(), "fairlead-control".to_owned())));
    assert_eq!(control.kubeconfig, None);
    assert_eq!(control.metrics, Some(([127, 0, 0, 1], 10252).into()));
    assert_eq!(resolve(&["--metrics-bind-address="]).expect("none").metrics, None);
    let control =
        resolve(&["--leader-elect=false", "--kubeconfig", "f", "--controllers", "-endpoint,*"]).expect("good");
    assert_eq!((control.lease, control.kubeconfig), (None, Some(PathBuf::from("f"))));
    assert_eq!(control.options.choice, Choice::parse("*,-endpoint").expect("controllers"));
    let control = resolve(&["--leader-elect-resource-name=mine"]).expect("good");
    assert_eq!(control.lease, Some(("kube-system".to_owned(), "mine".to_owned())));
}

#[test]
fn a_mistake_names_the_flag() {
    let check = |arguments: &[&str], want: &str| {
        let error = resolve(arguments).expect_err(want).to_string();
        assert!(error.starts_with(&format!("invalid argument {want}")), "{error}");
    };
    check(&["--controllers="], "\"\" for \"--controllers\" flag: it leaves nothing to run");
    check(&["--controllers=x"], "\"x\" for \"--controllers\" flag: there is no controller \"x\"");
    check(&["--metrics-bind-address=10252"], "\"10252\" for \"--metrics-bind-address\" flag: invalid socket address");
    check(&["--leader-elect=maybe"], "\"maybe\" for \"--leader-elect\" flag: want true or false");
    check(
        &["--max-endpoints-per-slice=0"],
        "\"0\" for \"--max-endpoints-per-slice\" flag: want a number from 1 to 1000",
    );
}
