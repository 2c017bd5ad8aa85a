//! The parser: builds a [`SyntaxTree`] from tokens, with mathjs' precedence.
//!
//! Precedence from loose to tight: assignment, `? :`, `or`, `xor`, `and`, `|`, `^|`, `&`,
//! comparisons, shifts, `to`/`in`, ranges, `+ -`, `* / % mod`, implicit multiplication,
//! `number/number` before a symbol, percentages, unary operators, `^`, `??`, postfix.
//! `binary_operators` handles `or` to percentages, `operands` the rest.

mod binary_operators;
pub(crate) mod literal;
mod operands;

use crate::budget::{Budget, exceeded};
use crate::error::{MathError, Result};
use crate::lexer::{Lexer, Token};
use crate::tree::{
    FunctionDefinition, Name, NodeId, NodeList, SyntaxNode, SyntaxTree, UnaryOperator,
};

pub(crate) fn parse<'a>(text: &'a str, budget: &Budget) -> Result<SyntaxTree<'a>> {
    if text.len() > budget.length {
        return Err(exceeded("length", budget.length));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        tree: SyntaxTree::new(),
        prefixes: Vec::new(),
        conditional: None,
        depth: 0,
        max_depth: budget.depth,
        max_nodes: budget.nodes,
    };
    parser.lexer.advance()?;
    parser.tree.root = parser.parse_block()?;
    match parser.lexer.token {
        Token::End => Ok(parser.tree),
        Token::Number | Token::Symbol => Err(parser.unexpected_error("part \"", "\"")),
        _ => Err(parser.unexpected_error("operator ", "")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    tree: SyntaxTree<'a>,
    prefixes: Vec<UnaryOperator>,
    /// The nesting level at which a `:` belongs to a `? :` and not to a range.
    conditional: Option<usize>,
    depth: usize,
    max_depth: usize,
    max_nodes: usize,
}

impl<'a> Parser<'a> {
    fn parse_block(&mut self) -> Result<NodeId> {
        let mut single = None;
        let mark = self.tree.scratch.len();
        if !self.at_separator() && self.lexer.token != Token::End {
            let node = self.parse_assignment()?;
            single = Some(node);
            if self.at_separator() {
                self.push_statement(node)?;
            }
        }
        let several = self.at_separator();
        while self.at_separator() {
            self.lexer.advance()?;
            if !self.at_separator() && self.lexer.token != Token::End {
                let node = self.parse_assignment()?;
                self.push_statement(node)?;
            }
        }
        if several && self.tree.scratch.len() > mark {
            let list = self.finish_list(mark);
            return self.add_node(SyntaxNode::Block(list));
        }
        match single {
            Some(node) => Ok(node),
            None => self.add_node(SyntaxNode::Undefined),
        }
    }

    fn at_separator(&self) -> bool {
        matches!(self.lexer.token, Token::Semicolon | Token::Newline)
    }

    fn push_statement(&mut self, node: NodeId) -> Result<()> {
        let node = match self.lexer.token {
            Token::Semicolon => self.add_node(SyntaxNode::Hidden(node))?,
            _ => node,
        };
        self.tree.scratch.push(node);
        Ok(())
    }

    // A conditional, or an assignment if `=` follows something assignable.
    fn parse_assignment(&mut self) -> Result<NodeId> {
        self.enter_level()?;
        let node = self.parse_conditional()?;
        let node = if self.lexer.token == Token::Assign {
            self.parse_assignment_to(node)?
        } else {
            node
        };
        self.depth -= 1;
        Ok(node)
    }

    fn parse_assignment_to(&mut self, target: NodeId) -> Result<NodeId> {
        match self.tree.node(target) {
            SyntaxNode::Symbol(name) => {
                self.lexer.advance_over_newlines()?;
                let value = self.parse_assignment()?;
                self.add_node(SyntaxNode::Assign(name, value))
            }
            SyntaxNode::Index {
                object,
                optional: false,
                ..
            }
            | SyntaxNode::Property {
                object,
                optional: false,
                ..
            } if self.is_reference(object) => {
                self.lexer.advance_over_newlines()?;
                let value = self.parse_assignment()?;
                self.add_node(SyntaxNode::AssignAt(target, value))
            }
            SyntaxNode::Call(function, arguments) => {
                match (self.tree.node(function), self.parameter_names(arguments)) {
                    (SyntaxNode::Symbol(name), Some(parameters)) => {
                        self.lexer.advance_over_newlines()?;
                        let body = self.parse_assignment()?;
                        let definition = self.tree.definitions.len() as u32;
                        self.tree.definitions.push(FunctionDefinition {
                            name,
                            parameters: parameters.into(),
                            body,
                        });
                        self.add_node(SyntaxNode::Function(definition))
                    }
                    _ => Err(self.invalid_target_error()),
                }
            }
            _ => Err(self.invalid_target_error()),
        }
    }

    fn invalid_target_error(&self) -> MathError {
        self.lexer
            .error("Invalid left hand side of assignment operator =")
    }

    fn is_reference(&self, node: NodeId) -> bool {
        matches!(
            self.tree.node(node),
            SyntaxNode::Symbol(_) | SyntaxNode::Index { .. } | SyntaxNode::Property { .. }
        )
    }

    fn parameter_names(&self, arguments: NodeList) -> Option<Vec<Name>> {
        self.tree
            .list(arguments)
            .iter()
            .map(|&node| match self.tree.node(node) {
                SyntaxNode::Symbol(name) => Some(name),
                _ => None,
            })
            .collect()
    }

    fn parse_conditional(&mut self) -> Result<NodeId> {
        let mut node = self.parse_binary(binary_operators::LOOSEST)?;
        // A loop, so that a chain of conditionals costs no stack.
        while self.lexer.token == Token::Question {
            // Until its `:` is read, a `:` on this level can't be a range.
            let before = self.conditional.replace(self.lexer.nesting);
            self.lexer.advance_over_newlines()?;
            let yes = self.parse_assignment()?;
            if self.lexer.token != Token::Colon {
                return Err(self
                    .lexer
                    .error("False part of conditional expression expected"));
            }
            self.conditional = None;
            self.lexer.advance_over_newlines()?;
            let no = self.parse_assignment()?;
            node = self.add_node(SyntaxNode::Conditional(node, yes, no))?;
            self.conditional = before;
        }
        Ok(node)
    }

    fn enter_level(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > self.max_depth {
            return Err(exceeded("depth", self.max_depth));
        }
        Ok(())
    }

    #[inline]
    fn add_node(&mut self, node: SyntaxNode) -> Result<NodeId> {
        if self.tree.nodes.len() >= self.max_nodes {
            return Err(exceeded("nodes", self.max_nodes));
        }
        self.tree.nodes.push(node);
        Ok(self.tree.nodes.len() as NodeId - 1)
    }

    // Moves the children read since `mark` into the tree.
    fn finish_list(&mut self, mark: usize) -> NodeList {
        let start = self.tree.lists.len();
        let SyntaxTree { lists, scratch, .. } = &mut self.tree;
        lists.extend(scratch.drain(mark..));
        NodeList {
            start: start as u32,
            len: (self.tree.lists.len() - start) as u32,
        }
    }

    fn single_item_list(&mut self, node: NodeId) -> NodeList {
        self.tree.lists.push(node);
        NodeList {
            start: self.tree.lists.len() as u32 - 1,
            len: 1,
        }
    }

    fn unexpected_error(&self, before: &str, after: &str) -> MathError {
        self.lexer
            .error(format!("Unexpected {before}{}{after}", self.lexer.lexeme()))
    }
}
