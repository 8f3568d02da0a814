//! Scenarios from arbitrary bytes: valid in form, with arbitrary rules.

use std::fmt::Write as _;

use arbitrary::{Arbitrary, Result, Unstructured};

/// A scenario, and the calls to make.
#[derive(Debug)]
pub struct Case {
    /// The canonical document.
    pub document: String,
    /// The calls in order.
    pub plan: Vec<Move>,
}

/// One call of the engine.
#[derive(Debug)]
pub enum Move {
    /// Take an action.
    Act {
        /// Its id.
        action: &'static str,
        /// Its parameters, as JSON.
        params: &'static str,
    },
    /// Finish the turn.
    Step,
}

const NUMBERS: &[&str] = &["state.n0", "state.n1", "state.tree.n", "state.items[0]", "state.made"];
const ARRAYS: &[&str] = &["state.items", "state.words", "state.tree.list"];
const OBJECTS: &[&str] = &["state", "state.tree"];
const READ: &[&str] = &[
    "state.n0",
    "state.n1",
    "state.tree.n",
    "state.items",
    "state.items.0",
    "state.words",
    "state.tree",
    "state.flag",
    "state.note",
    "state.made",
    "turn",
    "params.m",
    "params",
    "state",
    "entities",
];
const INSIDE: &[&str] = &["", "current", "accumulator", "n", "current.n", "0"];
const LITERALS: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "0.5",
    "3",
    "10",
    "1e16",
    "1e308",
    "5e-324",
    "true",
    "false",
    "null",
    "\"\"",
    "\"x\"",
    "\"é\"",
    "\"12\"",
    "[]",
    "[1,2]",
    "\"d0\"",
    "{}",
    "{\"n\":1}",
    "[[1]]",
];
const AMOUNTS: &[&str] = &["0", "1", "2", "-3", "0.5", "1e308", "\"d0\"", "\"d1\""];
const PARAMS: &[&str] =
    &["{}", "{\"m\":1}", "{\"m\":2.5}", "{\"m\":true}", "{\"m\":\"x\"}", "{\"zz\":1}", "[]", "{"];
const SCHEMAS: &[&str] = &[
    "{}",
    r#"{"m":{"maximum":3,"minimum":-1,"type":"integer"}}"#,
    r#"{"m":{"maximum":1.5,"minimum":0,"type":"number"}}"#,
    r#"{"m":{"type":"boolean"},"n":{"enum":["x","y"],"type":"string"}}"#,
    r#"{"m":{"maxLength":3,"type":"string"}}"#,
];
const ITERATORS: &[&str] = &["map", "filter", "all", "some", "none"];
const OPERATORS: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "min",
    "max",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "===",
    "!==",
    "and",
    "or",
    "!",
    "!!",
    "if",
    "?:",
    "cat",
    "substr",
    "in",
    "merge",
    "missing",
    "missing_some",
    "var",
];

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let plan = (0..u.int_in_range(1..=8)?).map(|_| Move::arbitrary(u)).collect::<Result<_>>()?;
        Ok(Self { document: Writer { u, out: String::new() }.document()?, plan })
    }
}

impl<'a> Arbitrary<'a> for Move {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(if u.ratio(1, 2)? {
            Self::Step
        } else {
            Self::Act { action: u.choose(&["a0", "a1", "zz"])?, params: u.choose(PARAMS)? }
        })
    }
}

/// Writer of a document. If the input is exhausted, it selects the first choice.
struct Writer<'u, 'a> {
    u: &'u mut Unstructured<'a>,
    out: String,
}

impl Writer<'_, '_> {
    fn document(mut self) -> Result<String> {
        self.out += r#"{"actions":["#;
        let actions = self.u.int_in_range(1..=2)?;
        self.each(actions, |w, n| {
            let _ = write!(w.out, r#"{{"id":"a{n}","#);
            w.consequence()?;
            w.out += r#","params":"#;
            w.one_of(SCHEMAS)?;
            w.out += r#","preconditions":"#;
            w.condition()?;
            w.close("}")
        })?;
        self.out += r#"],"loss_conditions":["#;
        self.each(2, |w, n| w.write_end_condition("l", n))?;
        self.out += r#"],"negativity_budget":{"decay_per_turn":{"state.n0":"#;
        self.one_of(&["0.5", "0", "-1", "1e308"])?;
        self.out += r#"}},"random_events":["#;
        let events = self.u.int_in_range(0..=3)?;
        self.each(events, |w, n| {
            let _ = write!(w.out, r#"{{"id":"e{n}","weight":0.3,"duration":"#);
            w.one_of(&["\"1h\"", "\"3h\"", "\"P1D\""])?;
            w.out += ",";
            w.consequence()?;
            w.out += r#","when":"#;
            w.condition()?;
            w.close("}")
        })?;
        self.out += r#"],"state":{"flag":true,"items":[1,2],"n0":"#;
        self.one_of(&["1", "0", "10", "1e308"])?;
        self.out += r#","n1":2,"note":"x","tree":{"list":[],"n":3},"words":["é"]},"win_conditions":["#;
        self.each(1, |w, n| w.write_end_condition("w", n))?;
        self.out += "]}";
        Ok(self.out)
    }

    fn each(&mut self, count: usize, item: impl Fn(&mut Self, usize) -> Result<()>) -> Result<()> {
        for n in 0..count {
            if n > 0 {
                self.out += ",";
            }
            item(self, n)?;
        }
        Ok(())
    }

    fn one_of(&mut self, texts: &[&str]) -> Result<()> {
        self.out += self.u.choose(texts)?;
        Ok(())
    }

    fn write_quoted(&mut self, texts: &[&str]) -> Result<()> {
        let _ = write!(self.out, "\"{}\"", self.u.choose(texts)?);
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "it ends the fallible part")]
    fn close(&mut self, text: &str) -> Result<()> {
        self.out += text;
        Ok(())
    }

    fn write_end_condition(&mut self, kind: &str, n: usize) -> Result<()> {
        let _ = write!(self.out, r#"{{"id":"{kind}{n}","when":{{"and":[{{">":[{{"var":"turn"}},2]}},"#);
        self.expression(3, false)?;
        self.close("]}}")
    }

    /// Write the consequence of an action or event.
    fn consequence(&mut self) -> Result<()> {
        self.out += r#""derives":{"d0":"#;
        self.expression(4, false)?;
        self.out += r#","d1":{"+":[1,{"var":"derives.d0"}]}},"effects":"#;
        self.effects(0)
    }

    fn effects(&mut self, depth: usize) -> Result<()> {
        self.out += "[";
        let count = self.u.int_in_range(usize::from(depth > 0)..=3)?;
        self.each(count, |w, _| w.effect(depth))?;
        self.close("]")
    }

    fn effect(&mut self, depth: usize) -> Result<()> {
        let most = if depth < 3 { 6 } else { 5 };
        match self.u.int_in_range(0..=most)? {
            0 => self.write_effect(&["inc", "dec", "mul"], NUMBERS, AMOUNTS),
            1 => self.write_effect(
                &["set"],
                &[NUMBERS, ARRAYS, &["state.note", "state.tree"]].concat(),
                LITERALS,
            ),
            2 => self.write_effect(&["push"], ARRAYS, LITERALS),
            3 => self.write_effect(
                &["patch"],
                OBJECTS,
                &["{}", r#"{"n":5,"p":"x"}"#, r#"{"é":[1]}"#, "\"d0\""],
            ),
            4 => {
                self.out += r#"{"op":"pop","path":""#;
                self.one_of(ARRAYS)?;
                self.close("\"}")
            }
            5 => self.close(r#"{"message":"x","op":"addlog"}"#),
            _ => {
                self.out += r#"{"op":"schedule","id":"#;
                self.write_quoted(&["s0", "s1"])?;
                self.out += ",";
                self.one_of(&[r#""after":1"#, r#""after":"3h""#, r#""at":2"#, r#""at":"P1D""#])?;
                self.out += r#","effects":"#;
                self.effects(depth + 1)?;
                self.close("}")
            }
        }
    }

    fn write_effect(&mut self, ops: &[&str], paths: &[&str], values: &[&str]) -> Result<()> {
        self.out += r#"{"op":"#;
        self.write_quoted(ops)?;
        self.out += r#","path":"#;
        self.write_quoted(paths)?;
        self.out += r#","value":"#;
        self.one_of(values)?;
        self.close("}")
    }

    fn condition(&mut self) -> Result<()> {
        if self.u.ratio(1, 3)? {
            return self.close("{}");
        }
        self.out += r#"{"!!":["#;
        self.expression(3, false)?;
        self.close("]}")
    }

    fn expression(&mut self, depth: usize, inside: bool) -> Result<()> {
        let kinds = if depth == 0 { 1 } else { 5 };
        match self.u.int_in_range(0..=kinds)? {
            0 => self.one_of(LITERALS),
            1 => {
                self.out += r#"{"var":"#;
                self.write_quoted(if inside { INSIDE } else { READ })?;
                self.close("}")
            }
            2 => {
                self.out += "{";
                self.write_quoted(ITERATORS)?;
                self.out += ":[";
                self.expression(depth - 1, inside)?;
                self.out += ",";
                self.expression(depth - 1, true)?;
                self.close("]}")
            }
            3 => {
                self.out += r#"{"reduce":["#;
                self.expression(depth - 1, inside)?;
                self.out += ",";
                self.expression(depth - 1, true)?;
                self.out += ",";
                self.expression(depth - 1, inside)?;
                self.close("]}")
            }
            _ => {
                self.out += "{";
                self.write_quoted(OPERATORS)?;
                self.out += ":[";
                let count = self.u.int_in_range(1..=3)?;
                self.each(count, |w, _| w.expression(depth - 1, inside))?;
                self.close("]}")
            }
        }
    }
}
