//! Where everything in a state is kept: which paths are slots, which are arrays, and what text is which number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::paths::Segment;
use crate::value::Value;

use super::types::Kind;

/// The arrangement of a state whose shape never changes, but for the length of its arrays.
#[derive(Debug)]
pub(crate) struct Layout {
    root: Place,
    pub(crate) slots: Vec<Slot>,
    pub(crate) lists: Vec<List>,
    pub(crate) texts: Texts,
}

/// What stands at a path.
#[derive(Debug)]
pub(super) enum Place {
    Slot(usize),
    List(usize),
    Object(BTreeMap<Arc<str>, Place>),
}

/// A number, boolean or text that stays one.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) path: Vec<Segment>,
    pub(crate) kind: Kind,
    pub(crate) initial: f64,
}

/// An array whose elements are, and stay, of one kind.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) path: Vec<Segment>,
    /// Unknown while nothing has been seen to be in it.
    kind: Option<Kind>,
    pub(crate) initial: Vec<f64>,
}

/// Every text that there can be in a run, in the order of code points.
#[derive(Debug)]
pub(crate) struct Texts(Vec<Arc<str>>);

/// Where a number can stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spot {
    Slot(usize),
    /// An array and an index in it.
    Item(usize, usize),
}

/// What a path leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Slot(usize),
    List(usize),
    Item(usize, usize),
    Object(&'a BTreeMap<Arc<str>, Place>),
}

impl List {
    /// Of what kind the elements are; numbers, if derived values are all that ever gets there.
    pub(crate) fn element(&self) -> Kind {
        self.kind.unwrap_or(Kind::Number)
    }
}

impl Layout {
    /// The layout of a state, unless something in it is neither a scalar nor an array of scalars of one kind.
    pub(super) fn new(state: &Value, texts: Texts) -> Option<Self> {
        let mut layout = Self { root: Place::Slot(0), slots: Vec::new(), lists: Vec::new(), texts };
        layout.root = layout.place(state, &mut Vec::new())?;
        Some(layout)
    }

    pub(super) fn root(&self) -> &Place {
        &self.root
    }

    /// The value that a number stands for.
    pub(crate) fn value(&self, kind: Kind, number: f64) -> Value {
        match kind {
            Kind::Number => Value::Number(number),
            Kind::Bool => Value::Bool(number != 0.0),
            Kind::Text => self.texts.text(number).map_or(Value::Null, Value::from),
        }
    }

    fn place(&mut self, value: &Value, path: &mut Vec<Segment>) -> Option<Place> {
        match value {
            Value::Object(members) => {
                let mut places = BTreeMap::new();
                for (key, member) in members.iter() {
                    path.push(Segment::Key(Arc::clone(key)));
                    places.insert(Arc::clone(key), self.place(member, path)?);
                    path.pop();
                }
                Some(Place::Object(places))
            }
            Value::Array(items) => {
                let (kind, initial) = self.items(items)?;
                self.lists.push(List { path: path.clone(), kind, initial });
                Some(Place::List(self.lists.len() - 1))
            }
            scalar => {
                let (kind, initial) = self.scalar(scalar)?;
                self.slots.push(Slot { path: path.clone(), kind, initial });
                Some(Place::Slot(self.slots.len() - 1))
            }
        }
    }

    /// A scalar as a number, and of what kind it is.
    pub(super) fn scalar(&self, value: &Value) -> Option<(Kind, f64)> {
        match value {
            Value::Number(number) => Some((Kind::Number, *number)),
            Value::Bool(value) => Some((Kind::Bool, f64::from(u8::from(*value)))),
            Value::Text(text) => Some((Kind::Text, self.texts.number(text)?)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The items of an array as numbers, if they are all of one kind.
    pub(super) fn items(&self, items: &[Value]) -> Option<(Option<Kind>, Vec<f64>)> {
        let items: Vec<(Kind, f64)> = items.iter().map(|item| self.scalar(item)).collect::<Option<_>>()?;
        let kind = items.first().map(|(kind, _)| *kind);
        let uniform = items.iter().all(|(other, _)| Some(*other) == kind);
        uniform.then(|| (kind, items.into_iter().map(|(_, number)| number).collect()))
    }

    /// What stands at a path below `state`.
    pub(super) fn find(&self, path: &[Segment]) -> Option<Target<'_>> {
        let mut place = &self.root;
        let mut path = path.iter();
        for segment in path.by_ref() {
            match (place, segment) {
                (Place::Object(members), Segment::Key(name) | Segment::Digits(name, _)) => {
                    place = members.get(name)?;
                }
                (Place::List(list), Segment::Index(index) | Segment::Digits(_, index)) => {
                    let index = usize::try_from(*index).ok()?;
                    return path.next().is_none().then_some(Target::Item(*list, index));
                }
                _ => return None,
            }
        }
        Some(match place {
            Place::Slot(slot) => Target::Slot(*slot),
            Place::List(list) => Target::List(*list),
            Place::Object(members) => Target::Object(members),
        })
    }

    /// Where a number stands at a path below `state`, and which in the beginning.
    pub(crate) fn number(&self, path: &[Segment]) -> Option<(Spot, f64)> {
        let (spot, kind, initial) = match self.find(path)? {
            Target::Slot(slot) => {
                let place = self.slots.get(slot)?;
                (Spot::Slot(slot), place.kind, place.initial)
            }
            Target::Item(list, index) => {
                let place = self.lists.get(list)?;
                (Spot::Item(list, index), place.element(), *place.initial.get(index)?)
            }
            Target::List(_) | Target::Object(_) => return None,
        };
        (kind == Kind::Number).then_some((spot, initial))
    }

    /// Note that elements of a kind are put into an array; whether that leaves them all of one kind.
    pub(super) fn admit(&mut self, list: usize, kind: Kind) -> bool {
        let Some(list) = self.lists.get_mut(list) else { return false };
        *list.kind.get_or_insert(kind) == kind
    }
}

impl Texts {
    /// The texts of a scenario, of a state of it, and of the effects that are pending there.
    pub(super) fn of(spec: &Value, state: &Value, effects: &[&[Value]]) -> Self {
        let mut texts = BTreeSet::from([Arc::from("")]);
        let mut pending = vec![spec, state];
        pending.extend(effects.iter().copied().flatten());
        while let Some(value) = pending.pop() {
            match value {
                Value::Text(text) => {
                    texts.insert(Arc::clone(text));
                }
                Value::Array(items) => pending.extend(items.iter()),
                Value::Object(members) => pending.extend(members.values()),
                _ => {}
            }
        }
        Self(texts.into_iter().collect())
    }

    /// The number that stands for a text.
    #[expect(clippy::cast_precision_loss, reason = "a document has fewer texts than 2^53")]
    fn number(&self, text: &str) -> Option<f64> {
        self.0.binary_search_by(|other| (**other).cmp(text)).ok().map(|place| place as f64)
    }

    /// The text that a number stands for.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made by `number`")]
    pub(crate) fn text(&self, number: f64) -> Option<&Arc<str>> {
        self.0.get(number as usize)
    }

    /// The numbers of the texts that something is true of.
    #[expect(clippy::cast_precision_loss, reason = "a document has fewer texts than 2^53")]
    pub(super) fn numbers_where(&self, test: impl Fn(&str) -> bool) -> Vec<f64> {
        let texts = self.0.iter().enumerate();
        texts.filter(|(_, text)| test(text)).map(|(place, _)| place as f64).collect()
    }

    /// The bytes of the longest.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(|text| text.len()).max().unwrap_or(0)
    }
}
