//! Tokens to a [`Tree`], with mathjs' precedence.
//!
//! From loose to tight: assignment, `? :`, `or`, `xor`, `and`, `|`, `^|`, `&`, comparisons, shifts, `to`/`in`, ranges, `+ -`,
//! `* / % mod`, implicit multiplication, `number/number` in front of a symbol, percentages, unary operators, `^`, `??`, postfix.
//! `ladder` climbs from `or` to percentages, `primary` reads what stands between operators.

mod ladder;
pub(crate) mod literal;
mod primary;

use crate::budget::{Budget, too_deep};
use crate::error::{Error, Result};
use crate::lexer::{Lexer, Token};
use crate::tree::{Definition, List, Name, Node, NodeId, Tree, Unary};

pub(crate) fn parse<'a>(text: &'a str, budget: &Budget) -> Result<Tree<'a>> {
    if text.len() > budget.length {
        return Err(Error::exceeded(
            "length",
            format!(
                "The expression is longer than {} bytes; shorten it",
                budget.length
            ),
        ));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        tree: Tree::new(),
        prefixes: Vec::new(),
        conditional: None,
        depth: 0,
        max_depth: budget.depth,
        max_nodes: budget.nodes,
    };
    parser.lexer.advance()?;
    parser.tree.root = parser.block()?;
    match parser.lexer.token {
        Token::End => Ok(parser.tree),
        Token::Number | Token::Symbol => Err(parser.unexpected("part \"", "\"")),
        _ => Err(parser.unexpected("operator ", "")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    tree: Tree<'a>,
    /// Prefix operators that wait for their operand.
    prefixes: Vec<Unary>,
    /// The nesting at which a `:` belongs to a `? :` and not to a range.
    conditional: Option<usize>,
    depth: usize,
    max_depth: usize,
    max_nodes: usize,
}

impl<'a> Parser<'a> {
    /// Statements, separated by `;` or newlines.
    fn block(&mut self) -> Result<NodeId> {
        let mut single = None;
        let mark = self.tree.scratch.len();
        if !self.at_separator() && self.lexer.token != Token::End {
            let node = self.assignment()?;
            single = Some(node);
            if self.at_separator() {
                self.push_statement(node)?;
            }
        }
        let several = self.at_separator();
        while self.at_separator() {
            self.lexer.advance()?;
            if !self.at_separator() && self.lexer.token != Token::End {
                let node = self.assignment()?;
                self.push_statement(node)?;
            }
        }
        if several && self.tree.scratch.len() > mark {
            let list = self.finish(mark);
            return self.add(Node::Block(list));
        }
        match single {
            Some(node) => Ok(node),
            None => self.add(Node::Undefined),
        }
    }

    fn at_separator(&self) -> bool {
        matches!(self.lexer.token, Token::Semicolon | Token::Newline)
    }

    fn push_statement(&mut self, node: NodeId) -> Result<()> {
        let node = match self.lexer.token {
            Token::Semicolon => self.add(Node::Hidden(node))?,
            _ => node,
        };
        self.tree.scratch.push(node);
        Ok(())
    }

    /// A conditional, or an assignment when `=` follows what can be assigned to.
    fn assignment(&mut self) -> Result<NodeId> {
        self.enter()?;
        let node = self.conditional()?;
        let node = if self.lexer.token == Token::Assign {
            self.assign_to(node)?
        } else {
            node
        };
        self.depth -= 1;
        Ok(node)
    }

    fn assign_to(&mut self, target: NodeId) -> Result<NodeId> {
        match self.tree.node(target) {
            Node::Symbol(name) => {
                self.lexer.advance_over_newlines()?;
                let value = self.assignment()?;
                self.add(Node::Assign(name, value))
            }
            Node::Index {
                object,
                optional: false,
                ..
            }
            | Node::Property {
                object,
                optional: false,
                ..
            } if self.is_place(object) => {
                self.lexer.advance_over_newlines()?;
                let value = self.assignment()?;
                self.add(Node::AssignAt(target, value))
            }
            Node::Call(function, arguments) => {
                match (self.tree.node(function), self.parameters(arguments)) {
                    (Node::Symbol(name), Some(parameters)) => {
                        self.lexer.advance_over_newlines()?;
                        let body = self.assignment()?;
                        let definition = self.tree.definitions.len() as u32;
                        self.tree.definitions.push(Definition {
                            name,
                            parameters: parameters.into(),
                            body,
                        });
                        self.add(Node::Function(definition))
                    }
                    _ => Err(self.invalid_target()),
                }
            }
            _ => Err(self.invalid_target()),
        }
    }

    fn invalid_target(&self) -> Error {
        self.lexer
            .error("Invalid left hand side of assignment operator =")
    }

    /// Whether a node is a variable, or a part of one.
    fn is_place(&self, node: NodeId) -> bool {
        matches!(
            self.tree.node(node),
            Node::Symbol(_) | Node::Index { .. } | Node::Property { .. }
        )
    }

    fn parameters(&self, arguments: List) -> Option<Vec<Name>> {
        self.tree
            .list(arguments)
            .iter()
            .map(|&node| match self.tree.node(node) {
                Node::Symbol(name) => Some(name),
                _ => None,
            })
            .collect()
    }

    fn conditional(&mut self) -> Result<NodeId> {
        let mut node = self.binary(ladder::LOOSEST)?;
        while self.lexer.token == Token::Question {
            let before = self.conditional.replace(self.lexer.nesting);
            self.lexer.advance_over_newlines()?;
            let yes = self.assignment()?;
            if self.lexer.token != Token::Colon {
                return Err(self
                    .lexer
                    .error("False part of conditional expression expected"));
            }
            self.conditional = None;
            self.lexer.advance_over_newlines()?;
            let no = self.assignment()?;
            node = self.add(Node::Conditional(node, yes, no))?;
            self.conditional = before;
        }
        Ok(node)
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(too_deep(self.max_depth));
        }
        Ok(())
    }

    #[inline]
    fn add(&mut self, node: Node) -> Result<NodeId> {
        if self.tree.nodes.len() >= self.max_nodes {
            return Err(Error::exceeded(
                "nodes",
                format!(
                    "The expression has more than {} parts; shorten it",
                    self.max_nodes
                ),
            ));
        }
        self.tree.nodes.push(node);
        Ok(self.tree.nodes.len() as NodeId - 1)
    }

    /// Moves the children read since `mark` into the tree.
    fn finish(&mut self, mark: usize) -> List {
        let start = self.tree.lists.len();
        let Tree { lists, scratch, .. } = &mut self.tree;
        lists.extend(scratch.drain(mark..));
        List {
            start: start as u32,
            len: (self.tree.lists.len() - start) as u32,
        }
    }

    fn single(&mut self, node: NodeId) -> List {
        self.tree.lists.push(node);
        List {
            start: self.tree.lists.len() as u32 - 1,
            len: 1,
        }
    }

    fn unexpected(&self, before: &str, after: &str) -> Error {
        self.lexer
            .error(format!("Unexpected {before}{}{after}", self.lexer.lexeme()))
    }
}
