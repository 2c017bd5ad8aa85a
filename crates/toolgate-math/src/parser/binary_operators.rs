//! Binary operators, from `or` to percentages, by precedence climbing.
//!
//! [`Parser::binary`] is one loop, so that a level of brackets costs four stack frames and
//! a long sum none.

use super::Parser;
use crate::error::Result;
use crate::lexer::Token;
use crate::tree::{BinaryOperator, NodeId, SyntaxNode, UnaryOperator};

/// The precedence of the loosest operator.
pub(super) const LOOSEST: u8 = level::OR;

/// The precedence levels of [`Parser::binary`].
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
    /// `1/2 pi` is half of pi, but `1/x pi` is not.
    pub(super) const RATIO: u8 = 14;
}

// The precedence and operator of a token between two operands.
fn infix(token: Token) -> Option<(u8, BinaryOperator)> {
    Some(match token {
        Token::Or => (level::OR, BinaryOperator::Or),
        Token::Xor => (level::XOR, BinaryOperator::Xor),
        Token::And => (level::AND, BinaryOperator::And),
        Token::Bar => (level::BIT_OR, BinaryOperator::BitOr),
        Token::CaretBar => (level::BIT_XOR, BinaryOperator::BitXor),
        Token::Ampersand => (level::BIT_AND, BinaryOperator::BitAnd),
        Token::Equal => (level::COMPARE, BinaryOperator::Equal),
        Token::Unequal => (level::COMPARE, BinaryOperator::Unequal),
        Token::Less => (level::COMPARE, BinaryOperator::Less),
        Token::Greater => (level::COMPARE, BinaryOperator::Greater),
        Token::LessEqual => (level::COMPARE, BinaryOperator::LessEqual),
        Token::GreaterEqual => (level::COMPARE, BinaryOperator::GreaterEqual),
        Token::ShiftLeft => (level::SHIFT, BinaryOperator::ShiftLeft),
        Token::ShiftRight => (level::SHIFT, BinaryOperator::ShiftRight),
        Token::ShiftRightLogical => (level::SHIFT, BinaryOperator::ShiftRightLogical),
        Token::To | Token::In => (level::CONVERT, BinaryOperator::Convert),
        Token::Plus => (level::ADD, BinaryOperator::Add),
        Token::Minus => (level::ADD, BinaryOperator::Subtract),
        Token::Times => (level::MULTIPLY, BinaryOperator::Multiply),
        Token::DotTimes => (level::MULTIPLY, BinaryOperator::DotMultiply),
        Token::Divide => (level::MULTIPLY, BinaryOperator::Divide),
        Token::DotDivide => (level::MULTIPLY, BinaryOperator::DotDivide),
        Token::Percent | Token::Mod => (level::MULTIPLY, BinaryOperator::Mod),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Parses operators of precedence `floor` and tighter.
    pub(super) fn binary(&mut self, floor: u8) -> Result<NodeId> {
        let first = if floor <= level::RANGE && self.lexer.token == Token::Colon {
            if self.conditional == Some(self.lexer.nesting) {
                return Err(self
                    .lexer
                    .error("The true-expression of a conditional operator may not be empty"));
            }
            self.add(SyntaxNode::Number(1.0))?
        } else {
            self.term()?
        };
        let mut node = self.ratio(first)?;
        let mut last = node;
        // Each operator binds looser than the one before it in this loop, because the right side
        // took the tighter ones.
        let mut ceiling = level::IMPLICIT;
        loop {
            if ceiling == level::IMPLICIT && floor <= level::IMPLICIT && self.multiplies(node, last)
            {
                last = self.operand(level::RATIO)?;
                node = self.add(SyntaxNode::Binary(BinaryOperator::Multiply, node, last))?;
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
                    self.add(SyntaxNode::Binary(operator, node, right))?
                }
            };
            ceiling = rung;
        }
    }

    // In `100 + 10%`, the percentage refers to the 100.
    fn share_of_left(&self, operator: BinaryOperator, right: NodeId) -> BinaryOperator {
        match (operator, self.tree.node(right)) {
            (BinaryOperator::Add, SyntaxNode::Unary(UnaryOperator::Percent, _)) => {
                BinaryOperator::AddPercent
            }
            (BinaryOperator::Subtract, SyntaxNode::Unary(UnaryOperator::Percent, _)) => {
                BinaryOperator::SubtractPercent
            }
            _ => operator,
        }
    }

    // `number / number` before a symbol or bracket binds tighter than the
    // implicit product: `1/2 pi`.
    fn ratio(&mut self, mut node: NodeId) -> Result<NodeId> {
        let mut last = node;
        while self.lexer.token == Token::Divide && self.is_signed_constant(last) {
            let before = self.lexer;
            self.lexer.advance_over_newlines()?;
            let divisor = self.lexer;
            // Looks two tokens ahead; the copied lexer brings the parser back.
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
            node = self.add(SyntaxNode::Binary(BinaryOperator::Divide, node, last))?;
        }
        Ok(node)
    }

    fn is_constant(&self, node: NodeId) -> bool {
        matches!(
            self.tree.node(node),
            SyntaxNode::Number(_)
                | SyntaxNode::Text(_)
                | SyntaxNode::True
                | SyntaxNode::False
                | SyntaxNode::Null
                | SyntaxNode::Undefined
        )
    }

    fn is_signed_constant(&self, node: NodeId) -> bool {
        match self.tree.node(node) {
            SyntaxNode::Unary(
                UnaryOperator::Minus | UnaryOperator::Plus | UnaryOperator::BitNot,
                inner,
            ) => self.is_constant(inner),
            _ => self.is_constant(node),
        }
    }

    // True if the current token multiplies without an operator: `2 a`, `(1)2`, `2(3)`, `2 in`.
    fn multiplies(&self, node: NodeId, last: NodeId) -> bool {
        match self.lexer.token {
            Token::Symbol | Token::Open => true,
            Token::In => match self.tree.node(node) {
                SyntaxNode::Unary(UnaryOperator::Minus, inner) => self.is_constant(inner),
                _ => self.is_constant(node),
            },
            Token::Number => match self.tree.node(last) {
                SyntaxNode::Unary(operator, _) => operator == UnaryOperator::Factorial,
                SyntaxNode::Binary(..) => false,
                _ => !self.is_constant(last),
            },
            _ => false,
        }
    }

    fn comparison(&mut self, first: NodeId, operator: BinaryOperator) -> Result<NodeId> {
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
                return self.add(SyntaxNode::Binary(operator, first, right));
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
        self.add(SyntaxNode::Chain {
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
            let unit = self.add(SyntaxNode::Symbol(name))?;
            return self.add(SyntaxNode::Binary(BinaryOperator::Multiply, value, unit));
        }
        let unit = self.operand(level::RANGE)?;
        self.add(SyntaxNode::Binary(BinaryOperator::Convert, value, unit))
    }

    fn starts_range(&self) -> bool {
        self.lexer.token == Token::Colon && self.conditional != Some(self.lexer.nesting)
    }

    fn range(&mut self, start: NodeId) -> Result<NodeId> {
        let second = self.range_part()?;
        if !self.starts_range() {
            return self.add(SyntaxNode::Range {
                start,
                step: None,
                end: second,
            });
        }
        let end = self.range_part()?;
        self.add(SyntaxNode::Range {
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
                self.add(SyntaxNode::Symbol(end))
            }
            _ => self.operand(level::ADD),
        }
    }

    // The right side of an operator, one level deeper.
    fn operand(&mut self, floor: u8) -> Result<NodeId> {
        self.enter()?;
        let node = self.binary(floor)?;
        self.depth -= 1;
        Ok(node)
    }
}
