//! Binary operators, from `or` to percentages, by precedence climbing.
//!
//! [`Parser::parse_binary`] is one loop, so that a level of brackets costs four stack frames and
//! a long sum none.

use super::Parser;
use crate::error::Result;
use crate::lexer::Token;
use crate::tree::{BinaryOperator, NodeId, SyntaxNode, UnaryOperator};

/// The precedence of the operator that binds loosest.
pub(super) const LOOSEST: u8 = level::OR;

/// The precedence levels of [`Parser::parse_binary`].
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
fn infix_operator(token: Token) -> Option<(u8, BinaryOperator)> {
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
    /// Parses operators of precedence `min_precedence` and tighter.
    pub(super) fn parse_binary(&mut self, min_precedence: u8) -> Result<NodeId> {
        let first = if min_precedence <= level::RANGE && self.lexer.token == Token::Colon {
            if self.conditional == Some(self.lexer.nesting) {
                return Err(self
                    .lexer
                    .error("The true-expression of a conditional operator may not be empty"));
            }
            self.add_node(SyntaxNode::Number(1.0))?
        } else {
            self.parse_term()?
        };
        let mut node = self.parse_ratio(first)?;
        let mut last = node;
        // The right side takes all tighter operators, so each operator in this loop binds at most
        // as tightly as the one before.
        let mut max_precedence = level::IMPLICIT;
        loop {
            if max_precedence == level::IMPLICIT
                && min_precedence <= level::IMPLICIT
                && self.starts_implicit_product(node, last)
            {
                last = self.parse_right_operand(level::RATIO)?;
                node = self.add_node(SyntaxNode::Binary(BinaryOperator::Multiply, node, last))?;
                continue;
            }
            if max_precedence >= level::RANGE
                && min_precedence <= level::RANGE
                && self.starts_range()
            {
                node = self.parse_range(node)?;
                max_precedence = level::CONVERT;
                continue;
            }
            let Some((precedence, operator)) =
                infix_operator(self.lexer.token).filter(|&(precedence, _)| {
                    precedence >= min_precedence && precedence <= max_precedence
                })
            else {
                return Ok(node);
            };
            node = match precedence {
                level::COMPARE => self.parse_comparison(node, operator)?,
                level::CONVERT => self.parse_conversion(node)?,
                _ => {
                    self.lexer.advance_over_newlines()?;
                    let right = self.parse_right_operand(precedence + 1)?;
                    let operator = self.percentage_operator(operator, right);
                    self.add_node(SyntaxNode::Binary(operator, node, right))?
                }
            };
            max_precedence = precedence;
        }
    }

    // In `100 + 10%`, the percentage refers to the 100.
    fn percentage_operator(&self, operator: BinaryOperator, right: NodeId) -> BinaryOperator {
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
    fn parse_ratio(&mut self, mut node: NodeId) -> Result<NodeId> {
        let mut last = node;
        while self.lexer.token == Token::Divide && self.is_signed_constant(last) {
            let before = self.lexer;
            self.lexer.advance_over_newlines()?;
            let divisor = self.lexer;
            // Looks two tokens ahead, then restores the copied lexer.
            let matched = self.lexer.token == Token::Number && {
                self.lexer.advance_over_newlines()?;
                matches!(self.lexer.token, Token::Symbol | Token::Open | Token::In)
            };
            if !matched {
                self.lexer = before;
                break;
            }
            self.lexer = divisor;
            last = self.parse_term()?;
            node = self.add_node(SyntaxNode::Binary(BinaryOperator::Divide, node, last))?;
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
    fn starts_implicit_product(&self, node: NodeId, last: NodeId) -> bool {
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

    fn parse_comparison(&mut self, first: NodeId, operator: BinaryOperator) -> Result<NodeId> {
        let mark = self.tree.scratch.len();
        self.tree.scratch.push(first);
        let mut operators = Vec::new();
        let mut operator = operator;
        loop {
            self.lexer.advance_over_newlines()?;
            let right = self.parse_right_operand(level::SHIFT)?;
            let next = infix_operator(self.lexer.token)
                .filter(|&(precedence, _)| precedence == level::COMPARE);
            if next.is_none() && operators.is_empty() {
                self.tree.scratch.truncate(mark);
                return self.add_node(SyntaxNode::Binary(operator, first, right));
            }
            self.tree.scratch.push(right);
            operators.push(operator);
            match next {
                Some((_, next)) => operator = next,
                None => break,
            }
        }
        let list = self.finish_list(mark);
        let start = self.tree.operators.len() as u32;
        self.tree.operators.append(&mut operators);
        self.add_node(SyntaxNode::Chain {
            list,
            operators: start,
        })
    }

    fn parse_conversion(&mut self, value: NodeId) -> Result<NodeId> {
        let inch = (self.lexer.token == Token::In).then(|| self.lexer.lexeme());
        self.lexer.advance_over_newlines()?;
        if let Some(inch) = inch
            && matches!(
                self.lexer.token,
                Token::End | Token::Close | Token::CloseBracket | Token::Comma | Token::Semicolon
            )
        {
            let name = self.tree.names.intern(inch);
            let unit = self.add_node(SyntaxNode::Symbol(name))?;
            return self.add_node(SyntaxNode::Binary(BinaryOperator::Multiply, value, unit));
        }
        let unit = self.parse_right_operand(level::RANGE)?;
        self.add_node(SyntaxNode::Binary(BinaryOperator::Convert, value, unit))
    }

    fn starts_range(&self) -> bool {
        self.lexer.token == Token::Colon && self.conditional != Some(self.lexer.nesting)
    }

    fn parse_range(&mut self, start: NodeId) -> Result<NodeId> {
        let second = self.parse_range_part()?;
        if !self.starts_range() {
            return self.add_node(SyntaxNode::Range {
                start,
                step: None,
                end: second,
            });
        }
        let end = self.parse_range_part()?;
        self.add_node(SyntaxNode::Range {
            start,
            step: Some(second),
            end,
        })
    }

    fn parse_range_part(&mut self) -> Result<NodeId> {
        self.lexer.advance_over_newlines()?;
        match self.lexer.token {
            Token::Close | Token::CloseBracket | Token::Comma | Token::End => {
                let end = self.tree.names.intern("end");
                self.add_node(SyntaxNode::Symbol(end))
            }
            _ => self.parse_right_operand(level::ADD),
        }
    }

    // The right side of an operator, one level deeper.
    fn parse_right_operand(&mut self, min_precedence: u8) -> Result<NodeId> {
        self.enter_level()?;
        let node = self.parse_binary(min_precedence)?;
        self.depth -= 1;
        Ok(node)
    }
}
