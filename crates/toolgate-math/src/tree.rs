//! The syntax tree: nodes in one arena, children by index, so dropping it doesn't recurse.

use std::cell::Cell;
use std::collections::HashMap;
use std::mem::take;
use std::sync::Arc;

pub(crate) type NodeId = u32;
pub(crate) type Name = u32;

/// A range of children in [`SyntaxTree::lists`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeList {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnaryOperator {
    Minus,
    Plus,
    BitNot,
    Not,
    Factorial,
    Transpose,
    /// `10%` is `10 / 100`, except in a sum, where it is a share of the left side.
    Percent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
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
    AddPercent,
    SubtractPercent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SyntaxNode {
    Number(f64),
    Text(u32),
    True,
    False,
    Null,
    Undefined,
    Symbol(Name),
    // Brackets are kept in the tree, because the grammar depends on them: `f(3)` is a
    // call, `(f)(3)` a product.
    Group(NodeId),
    Unary(UnaryOperator, NodeId),
    Binary(BinaryOperator, NodeId, NodeId),
    /// `a < b <= c`: operands in `list`, operators from `operators` on.
    Chain {
        list: NodeList,
        operators: u32,
    },
    Conditional(NodeId, NodeId, NodeId),
    Range {
        start: NodeId,
        step: Option<NodeId>,
        end: NodeId,
    },
    Array(NodeList),
    Object {
        keys: u32,
        list: NodeList,
    },
    Call(NodeId, NodeList),
    Index {
        object: NodeId,
        list: NodeList,
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
    Block(NodeList),
    /// A statement that ends with `;`, so that its value isn't shown.
    Hidden(NodeId),
}

#[derive(Clone, Debug)]
pub(crate) struct FunctionDefinition {
    pub(crate) name: Name,
    pub(crate) parameters: Arc<[Name]>,
    pub(crate) body: NodeId,
}

#[derive(Debug)]
pub(crate) struct SyntaxTree<'a> {
    pub(crate) nodes: Vec<SyntaxNode>,
    pub(crate) lists: Vec<NodeId>,
    pub(crate) operators: Vec<BinaryOperator>,
    pub(crate) texts: Vec<Arc<str>>,
    pub(crate) definitions: Vec<FunctionDefinition>,
    pub(crate) names: NameTable<'a>,
    pub(crate) root: NodeId,
    // Collects the children of unfinished lists, so that each finished list
    // is contiguous in `lists`.
    pub(crate) scratch: Vec<NodeId>,
}

impl SyntaxTree<'_> {
    /// An empty tree that reuses the buffers of this thread's last one.
    pub(crate) fn new() -> Self {
        let (nodes, lists, scratch) = SPARE.take();
        Self {
            nodes,
            lists,
            scratch,
            operators: Vec::new(),
            texts: Vec::new(),
            definitions: Vec::new(),
            names: NameTable::default(),
            root: 0,
        }
    }

    pub(crate) fn node(&self, id: NodeId) -> SyntaxNode {
        self.nodes[id as usize]
    }

    pub(crate) fn list(&self, list: NodeList) -> &[NodeId] {
        &self.lists[list.start as usize..(list.start + list.len) as usize]
    }
}

// The buffers are reused, because allocating and freeing them took a third of the time of a short
// expression.
type TreeBuffers = (Vec<SyntaxNode>, Vec<NodeId>, Vec<NodeId>);

// Larger buffers aren't kept, so that one long expression doesn't hold memory forever.
const MAX_KEPT_NODES: usize = 1024;

thread_local! {
    static SPARE: Cell<TreeBuffers> = const { Cell::new((Vec::new(), Vec::new(), Vec::new())) };
}

impl Drop for SyntaxTree<'_> {
    fn drop(&mut self) {
        let mut buffers = (
            take(&mut self.nodes),
            take(&mut self.lists),
            take(&mut self.scratch),
        );
        if buffers.0.capacity() <= MAX_KEPT_NODES
            && buffers.1.capacity() <= MAX_KEPT_NODES
            && buffers.2.capacity() <= MAX_KEPT_NODES
        {
            buffers.0.clear();
            buffers.1.clear();
            buffers.2.clear();
            // Fails on a thread that is ending, which needs no buffers.
            let _kept = SPARE.try_with(|spare| spare.set(buffers));
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct NameTable<'a> {
    all: Vec<&'a str>,
    // Exists only above MAX_LINEAR_NAMES: a short list is faster to search than to hash.
    index: Option<HashMap<&'a str, Name>>,
}

const MAX_LINEAR_NAMES: usize = 12;

impl<'a> NameTable<'a> {
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
        } else if self.all.len() > MAX_LINEAR_NAMES {
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
