use super::align;

fn check(text: &str, expected: &str) {
    assert_eq!(align(text), expected, "{text:?}");
}

#[test]
fn cells_are_as_wide_as_their_neighbours() {
    check("Name:\tweb\nNamespace:\tdefault\n", "Name:       web\nNamespace:  default\n");
    check("a:\tb\nlone\nlonger:\tc\n", "a:  b\nlone\nlonger:  c\n");
    check("Port:\thttp\t80/TCP\nEndpoints:\tx\n", "Port:       http  80/TCP\nEndpoints:  x\n");
    check("Labels:\ta=1\n\tb=2\n", "Labels:  a=1\n         b=2\n");
    check("", "");
}

#[test]
fn an_empty_cell_keeps_its_place() {
    check("IP:\t\nIPs:\tx\n", "IP:   \nIPs:  x\n");
}
