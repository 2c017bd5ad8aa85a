//! The ladder of binary operators, from `or` down to percentages.
//!
//! [`Parser::binary`] climbs it in one loop, so that a level of brackets costs four stack frames and a long sum none.

use super::Parser;
use crate::error::Result;
use crate::lexer::Token;
use crate::tree::{Binary, Node, NodeId, Unary};

/// The rung of the loosest operator.
pub(super) const LOOSEST: u8 = level::OR;

/// The rungs of the ladder that [`Parser::binary`] climbs.
mod level {
    pub(super) const OR: u8 = 1;
    pub(super) const XOR: u8 = 2;
    pub(super) const AND: u8 = 3;
    pub(super) const BIT_OR: u8 = 4;
    pub(super) const BIT_XOR: u8 = 5;
    pub(super) const BIT_AND: u8 = 6;
    pub(super) const COMPARE: u8 = 7;
    pub(super) const SHIFT: u8 = 8;
    pub(super) const CONVERT: u8 = 9;
    pub(super) const RANGE: u8 = 10;
    pub(super) const ADD: u8 = 11;
    pub(super) const MULTIPLY: u8 = 12;
    pub(super) const IMPLICIT: u8 = 13;
    /// `1/2 pi` is half of pi, `1/x pi` is not.
    pub(super) const RATIO: u8 = 14;
}

/// The rung and the operator that a token stands for between two operands.
fn infix(token: Token) -> Option<(u8, Binary)> {
    Some(match token {
        Token::Or => (level::OR, Binary::Or),
        Token::Xor => (level::XOR, Binary::Xor),
        Token::And => (level::AND, Binary::And),
        Token::Bar => (level::BIT_OR, Binary::BitOr),
        Token::CaretBar => (level::BIT_XOR, Binary::BitXor),
        Token::Ampersand => (level::BIT_AND, Binary::BitAnd),
        Token::Equal => (level::COMPARE, Binary::Equal),
        Token::Unequal => (level::COMPARE, Binary::Unequal),
        Token::Less => (level::COMPARE, Binary::Less),
        Token::Greater => (level::COMPARE, Binary::Greater),
        Token::LessEqual => (level::COMPARE, Binary::LessEqual),
        Token::GreaterEqual => (level::COMPARE, Binary::GreaterEqual),
        Token::ShiftLeft => (level::SHIFT, Binary::ShiftLeft),
        Token::ShiftRight => (level::SHIFT, Binary::ShiftRight),
        Token::ShiftRightLogical => (level::SHIFT, Binary::ShiftRightLogical),
        Token::To | Token::In => (level::CONVERT, Binary::Convert),
        Token::Plus => (level::ADD, Binary::Add),
        Token::Minus => (level::ADD, Binary::Subtract),
        Token::Times => (level::MULTIPLY, Binary::Multiply),
        Token::DotTimes => (level::MULTIPLY, Binary::DotMultiply),
        Token::Divide => (level::MULTIPLY, Binary::Divide),
        Token::DotDivide => (level::MULTIPLY, Binary::DotDivide),
        Token::Percent | Token::Mod => (level::MULTIPLY, Binary::Mod),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Everything from `or` down to percentages: operators on rungs from `floor` up.
    pub(super) fn binary(&mut self, floor: u8) -> Result<NodeId> {
        let first = if floor <= level::RANGE && self.lexer.token == Token::Colon {
            if self.conditional == Some(self.lexer.nesting) {
                return Err(self
                    .lexer
                    .error("The true-expression of a conditional operator may not be empty"));
            }
            self.add(Node::Number(1.0))?
        } else {
            self.term()?
        };
        let mut node = self.ratio(first)?;
        let mut last = node;
        // An operator binds looser than the one before it in this loop: what is tighter went to its right side.
        let mut ceiling = level::IMPLICIT;
        loop {
            if ceiling == level::IMPLICIT && floor <= level::IMPLICIT && self.multiplies(node, last)
            {
                last = self.operand(level::RATIO)?;
                node = self.add(Node::Binary(Binary::Multiply, node, last))?;
                continue;
            }
            if ceiling >= level::RANGE && floor <= level::RANGE && self.starts_range() {
                node = self.range(node)?;
                ceiling = level::CONVERT;
                continue;
            }
            let Some((rung, operator)) =
                infix(self.lexer.token).filter(|&(rung, _)| rung >= floor && rung <= ceiling)
            else {
                return Ok(node);
            };
            node = match rung {
                level::COMPARE => self.comparison(node, operator)?,
                level::CONVERT => self.conversion(node)?,
                _ => {
                    self.lexer.advance_over_newlines()?;
                    let right = self.operand(rung + 1)?;
                    let operator = self.share_of_left(operator, right);
                    self.add(Node::Binary(operator, node, right))?
                }
            };
            ceiling = rung;
        }
    }

    /// `100 + 10%` adds ten percent of the 100.
    fn share_of_left(&self, operator: Binary, right: NodeId) -> Binary {
        match (operator, self.tree.node(right)) {
            (Binary::Add, Node::Unary(Unary::Percent, _)) => Binary::AddPercent,
            (Binary::Subtract, Node::Unary(Unary::Percent, _)) => Binary::SubtractPercent,
            _ => operator,
        }
    }

    /// `number / number` in front of a symbol or bracket binds tighter than the implicit product: `1/2 pi`.
    fn ratio(&mut self, mut node: NodeId) -> Result<NodeId> {
        let mut last = node;
        while self.lexer.token == Token::Divide && self.is_signed_constant(last) {
            let before = self.lexer;
            self.lexer.advance_over_newlines()?;
            let divisor = self.lexer;
            let matched = self.lexer.token == Token::Number && {
                self.lexer.advance_over_newlines()?;
                matches!(self.lexer.token, Token::Symbol | Token::Open | Token::In)
            };
            if !matched {
                self.lexer = before;
                break;
            }
            self.lexer = divisor;
            last = self.term()?;
            node = self.add(Node::Binary(Binary::Divide, node, last))?;
        }
        Ok(node)
    }

    fn is_constant(&self, node: NodeId) -> bool {
        matches!(
            self.tree.node(node),
            Node::Number(_)
                | Node::Text(_)
                | Node::True
                | Node::False
                | Node::Null
                | Node::Undefined
        )
    }

    fn is_signed_constant(&self, node: NodeId) -> bool {
        match self.tree.node(node) {
            Node::Unary(Unary::Minus | Unary::Plus | Unary::BitNot, inner) => {
                self.is_constant(inner)
            }
            _ => self.is_constant(node),
        }
    }

    /// Whether the current token multiplies without an operator: `2 a`, `(1)2`, `2(3)`, `2 in`.
    fn multiplies(&self, node: NodeId, last: NodeId) -> bool {
        match self.lexer.token {
            Token::Symbol | Token::Open => true,
            Token::In => match self.tree.node(node) {
                Node::Unary(Unary::Minus, inner) => self.is_constant(inner),
                _ => self.is_constant(node),
            },
            Token::Number => match self.tree.node(last) {
                Node::Unary(operator, _) => operator == Unary::Factorial,
                Node::Binary(..) => false,
                _ => !self.is_constant(last),
            },
            _ => false,
        }
    }

    fn comparison(&mut self, first: NodeId, operator: Binary) -> Result<NodeId> {
        let mark = self.tree.scratch.len();
        self.tree.scratch.push(first);
        let mut operators = Vec::new();
        let mut operator = operator;
        loop {
            self.lexer.advance_over_newlines()?;
            let right = self.operand(level::SHIFT)?;
            let next = infix(self.lexer.token).filter(|&(rung, _)| rung == level::COMPARE);
            if next.is_none() && operators.is_empty() {
                self.tree.scratch.truncate(mark);
                return self.add(Node::Binary(operator, first, right));
            }
            self.tree.scratch.push(right);
            operators.push(operator);
            match next {
                Some((_, next)) => operator = next,
                None => break,
            }
        }
        let list = self.finish(mark);
        let start = self.tree.operators.len() as u32;
        self.tree.operators.append(&mut operators);
        self.add(Node::Chain {
            list,
            operators: start,
        })
    }

    fn conversion(&mut self, value: NodeId) -> Result<NodeId> {
        let inch = (self.lexer.token == Token::In).then(|| self.lexer.lexeme());
        self.lexer.advance_over_newlines()?;
        if let Some(inch) = inch
            && matches!(
                self.lexer.token,
                Token::End | Token::Close | Token::CloseBracket | Token::Comma | Token::Semicolon
            )
        {
            let name = self.tree.names.intern(inch);
            let unit = self.add(Node::Symbol(name))?;
            return self.add(Node::Binary(Binary::Multiply, value, unit));
        }
        let unit = self.operand(level::RANGE)?;
        self.add(Node::Binary(Binary::Convert, value, unit))
    }

    fn starts_range(&self) -> bool {
        self.lexer.token == Token::Colon && self.conditional != Some(self.lexer.nesting)
    }

    fn range(&mut self, start: NodeId) -> Result<NodeId> {
        let second = self.range_part()?;
        if !self.starts_range() {
            return self.add(Node::Range {
                start,
                step: None,
                end: second,
            });
        }
        let end = self.range_part()?;
        self.add(Node::Range {
            start,
            step: Some(second),
            end,
        })
    }

    fn range_part(&mut self) -> Result<NodeId> {
        self.lexer.advance_over_newlines()?;
        match self.lexer.token {
            Token::Close | Token::CloseBracket | Token::Comma | Token::End => {
                let end = self.tree.names.intern("end");
                self.add(Node::Symbol(end))
            }
            _ => self.operand(level::ADD),
        }
    }

    /// The right side of an operator, one level deeper.
    fn operand(&mut self, floor: u8) -> Result<NodeId> {
        self.enter()?;
        let node = self.binary(floor)?;
        self.depth -= 1;
        Ok(node)
    }
}
