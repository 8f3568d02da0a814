//! Layout of a state: paths to slots and arrays, and texts to numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::paths::Segment;
use crate::value::{Object, Value};

use super::types::Kind;

/// Sections whose texts enter no state. The texts of entities are read as a whole.
const UNREAD: [&str; 4] = ["premise", "opening", "epilogues", "labels"];

/// The layout of a state whose shape never changes, except for the length of its arrays.
#[derive(Debug)]
pub(crate) struct Layout {
    root: Place,
    pub(crate) slots: Vec<Slot>,
    pub(crate) lists: Vec<List>,
    pub(crate) texts: Texts,
}

/// The content at a path.
#[derive(Debug)]
pub(super) enum Place {
    Slot(usize),
    List(usize),
    Object(BTreeMap<Arc<str>, Place>),
}

/// A scalar whose kind never changes.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) path: Vec<Segment>,
    pub(crate) kind: Kind,
    pub(crate) initial: f64,
}

/// An array whose elements have one kind.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) path: Vec<Segment>,
    /// Unknown until an element is seen.
    kind: Option<Kind>,
    pub(crate) initial: Vec<f64>,
}

/// All texts that a run can contain, in the order of code points.
#[derive(Debug)]
pub(crate) struct Texts(Vec<Arc<str>>);

/// The location of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spot {
    Slot(usize),
    /// An array and an index.
    Item(usize, usize),
}

/// The target of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    Slot(usize),
    List(usize),
    Item(usize, usize),
    Object(&'a BTreeMap<Arc<str>, Place>),
}

impl List {
    /// Return the kind of the elements. It is a number if only derived values enter the array.
    pub(crate) fn element(&self) -> Kind {
        self.kind.unwrap_or(Kind::Number)
    }
}

impl Layout {
    /// Return the layout of a state, or `None` if it contains anything but scalars and arrays of scalars of
    /// one kind.
    pub(super) fn new(state: &Value, texts: Texts) -> Option<Self> {
        let mut layout = Self { root: Place::Slot(0), slots: Vec::new(), lists: Vec::new(), texts };
        layout.root = layout.place(state, &mut Vec::new())?;
        Some(layout)
    }

    pub(super) fn root(&self) -> &Place {
        &self.root
    }

    /// Return the value that a number represents.
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

    /// Return a scalar as a number with its kind.
    pub(super) fn scalar(&self, value: &Value) -> Option<(Kind, f64)> {
        match value {
            Value::Number(number) => Some((Kind::Number, *number)),
            Value::Bool(value) => Some((Kind::Bool, f64::from(u8::from(*value)))),
            Value::Text(text) => Some((Kind::Text, self.texts.number(text)?)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// Return the items of an array as numbers if they have one kind.
    pub(super) fn items(&self, items: &[Value]) -> Option<(Option<Kind>, Vec<f64>)> {
        let items: Vec<(Kind, f64)> = items.iter().map(|item| self.scalar(item)).collect::<Option<_>>()?;
        let kind = items.first().map(|(kind, _)| *kind);
        let uniform = items.iter().all(|(other, _)| Some(*other) == kind);
        uniform.then(|| (kind, items.into_iter().map(|(_, number)| number).collect()))
    }

    /// Return the content at a path below `state`.
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

    /// Return the location and the initial value of the number at a path below `state`.
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

    /// Record that elements of a kind enter an array. Return True if the array still has one kind.
    pub(super) fn admit(&mut self, list: usize, kind: Kind) -> bool {
        let Some(list) = self.lists.get_mut(list) else { return false };
        *list.kind.get_or_insert(kind) == kind
    }
}

impl Texts {
    /// Collect the texts of a scenario, of a state, and of its pending effects.
    pub(super) fn of(spec: &Object, state: &Value, effects: &[&[Value]]) -> Self {
        let mut texts = BTreeSet::from([Arc::from("")]);
        let read = spec.iter().filter(|(key, _)| !UNREAD.contains(&&***key));
        let mut pending: Vec<&Value> = read.map(|(_, section)| section).collect();
        pending.push(state);
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

    /// Return the number of a text.
    #[expect(clippy::cast_precision_loss, reason = "a document has fewer texts than 2^53")]
    fn number(&self, text: &str) -> Option<f64> {
        self.0.binary_search_by(|other| (**other).cmp(text)).ok().map(|place| place as f64)
    }

    /// Return the text of a number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made by `number`")]
    pub(crate) fn text(&self, number: f64) -> Option<&Arc<str>> {
        self.0.get(number as usize)
    }

    /// Return the numbers of the texts that pass a test.
    #[expect(clippy::cast_precision_loss, reason = "a document has fewer texts than 2^53")]
    pub(super) fn numbers_where(&self, test: impl Fn(&str) -> bool) -> Vec<f64> {
        let texts = self.0.iter().enumerate();
        texts.filter(|(_, text)| test(text)).map(|(place, _)| place as f64).collect()
    }

    /// Return the bytes of the longest text.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(|text| text.len()).max().unwrap_or(0)
    }
}
