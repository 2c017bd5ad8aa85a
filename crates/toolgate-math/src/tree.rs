//! The parsed expression: nodes in one arena, children by index, nothing that recurses when dropped.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

pub(crate) type NodeId = u32;
pub(crate) type Name = u32;

/// A run of children in [`Tree::lists`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    BitNot,
    Not,
    Factorial,
    Transpose,
    /// `10%` is `10 / 100`; a sum takes it as a share of its left side.
    Percent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    DotMultiply,
    DotDivide,
    Mod,
    Power,
    DotPower,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    ShiftRightLogical,
    Equal,
    Unequal,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    And,
    Or,
    Xor,
    Nullish,
    Convert,
    /// `a + b%`: b percent of a, added to a.
    AddPercent,
    /// `a - b%`: b percent of a, taken from a.
    SubtractPercent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Number(f64),
    Text(u32),
    True,
    False,
    Null,
    Undefined,
    Symbol(Name),
    /// Brackets around an expression; the grammar cares whether they are there.
    Group(NodeId),
    Unary(Unary, NodeId),
    Binary(Binary, NodeId, NodeId),
    /// `a < b <= c`: operands in `list`, operators from `operators` on.
    Chain {
        list: List,
        operators: u32,
    },
    Conditional(NodeId, NodeId, NodeId),
    Range {
        start: NodeId,
        step: Option<NodeId>,
        end: NodeId,
    },
    Array(List),
    /// Keys are texts, in pairs with their values.
    Object {
        keys: u32,
        list: List,
    },
    Call(NodeId, List),
    Index {
        object: NodeId,
        list: List,
        optional: bool,
    },
    Property {
        object: NodeId,
        key: u32,
        optional: bool,
    },
    Assign(Name, NodeId),
    /// Assignment to an `Index` or `Property` node.
    AssignAt(NodeId, NodeId),
    Function(u32),
    Block(List),
    /// A statement whose value is not shown: it ends with `;`.
    Hidden(NodeId),
}

/// `name(parameters) = body`.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) name: Name,
    pub(crate) parameters: Arc<[Name]>,
    pub(crate) body: NodeId,
}

#[derive(Debug)]
pub(crate) struct Tree<'a> {
    pub(crate) nodes: Vec<Node>,
    pub(crate) lists: Vec<NodeId>,
    pub(crate) operators: Vec<Binary>,
    pub(crate) texts: Vec<Arc<str>>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) names: Names<'a>,
    pub(crate) root: NodeId,
    /// Children of the lists that the parser is reading; a finished list moves to `lists` in one piece.
    pub(crate) scratch: Vec<NodeId>,
}

impl Tree<'_> {
    /// An empty tree in the memory that the last one of this thread left behind.
    pub(crate) fn new() -> Self {
        let (nodes, lists, scratch) = SPARE.take();
        Self {
            nodes,
            lists,
            scratch,
            operators: Vec::new(),
            texts: Vec::new(),
            definitions: Vec::new(),
            names: Names::default(),
            root: 0,
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes[id as usize]
    }

    pub(crate) fn list(&self, list: List) -> &[NodeId] {
        &self.lists[list.start as usize..(list.start + list.len) as usize]
    }
}

/// The buffers of a tree: a third of the time of a short expression would go into getting and returning them.
type Buffers = (Vec<Node>, Vec<NodeId>, Vec<NodeId>);

/// Buffers larger than this are not kept.
const KEPT: usize = 1024;

thread_local! {
    static SPARE: Cell<Buffers> = const { Cell::new((Vec::new(), Vec::new(), Vec::new())) };
}

impl Drop for Tree<'_> {
    fn drop(&mut self) {
        let mut buffers = (
            take(&mut self.nodes),
            take(&mut self.lists),
            take(&mut self.scratch),
        );
        if buffers.0.capacity() <= KEPT
            && buffers.1.capacity() <= KEPT
            && buffers.2.capacity() <= KEPT
        {
            buffers.0.clear();
            buffers.1.clear();
            buffers.2.clear();
            // A thread that is ending has nowhere to keep them.
            let _kept = SPARE.try_with(|spare| spare.set(buffers));
        }
    }
}

/// The names of an expression, each once.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    all: Vec<&'a str>,
    /// Only made when there are many: a short list is faster to walk than to hash.
    index: Option<HashMap<&'a str, Name>>,
}

const WALKABLE: usize = 12;

impl<'a> Names<'a> {
    pub(crate) fn intern(&mut self, text: &'a str) -> Name {
        let known = match &self.index {
            Some(index) => index.get(text).copied(),
            None => self
                .all
                .iter()
                .position(|known| *known == text)
                .map(|at| at as Name),
        };
        known.unwrap_or_else(|| self.add(text))
    }

    fn add(&mut self, text: &'a str) -> Name {
        let name = self.all.len() as Name;
        self.all.push(text);
        if let Some(index) = &mut self.index {
            index.insert(text, name);
        } else if self.all.len() > WALKABLE {
            self.index = Some(
                (0..)
                    .zip(&self.all)
                    .map(|(name, text)| (*text, name))
                    .collect(),
            );
        }
        name
    }

    pub(crate) fn text(&self, name: Name) -> &'a str {
        self.all[name as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}
