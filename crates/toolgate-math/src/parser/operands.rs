//! Parses operands: prefix and postfix operators, powers, literals, brackets, calls and indexes.

use super::Parser;
use crate::error::Result;
use crate::lexer::Token;
use crate::tree::{BinaryOperator, NodeId, NodeList, SyntaxNode, UnaryOperator};

impl Parser<'_> {
    /// An operand, optionally followed by `%`.
    pub(super) fn parse_term(&mut self) -> Result<NodeId> {
        let node = self.parse_signed()?;
        if self.lexer.token != Token::Percent {
            return Ok(node);
        }
        // `5% 2` is a remainder. It is a percentage only if no operand can follow.
        let before = self.lexer;
        self.lexer.advance_over_newlines()?;
        if self.starts_operand() {
            self.lexer = before;
            return Ok(node);
        }
        self.add_node(SyntaxNode::Unary(UnaryOperator::Percent, node))
    }

    fn starts_operand(&self) -> bool {
        let token = self.lexer.token;
        token.is_word()
            || matches!(
                token,
                Token::Number
                    | Token::Symbol
                    | Token::Open
                    | Token::OpenBracket
                    | Token::OpenBrace
                    | Token::DoubleQuote
                    | Token::Quote
                    | Token::Plus
                    | Token::Minus
                    | Token::Tilde
            )
    }

    // Prefix operators and powers: `-2^-3` is `-(2^(-3))`.
    fn parse_signed(&mut self) -> Result<NodeId> {
        let mark = self.prefixes.len();
        while let Some(operator) = prefix_operator(self.lexer.token) {
            self.prefixes.push(operator);
            self.lexer.advance_over_newlines()?;
        }
        let mut node = self.parse_postfix()?;
        if self.lexer.token == Token::Nullish {
            node = self.parse_coalescing(node)?;
        }
        if let Some(operator) = power_operator(self.lexer.token) {
            self.lexer.advance_over_newlines()?;
            self.enter_level()?;
            let exponent = self.parse_signed()?;
            self.depth -= 1;
            node = self.add_node(SyntaxNode::Binary(operator, node, exponent))?;
        }
        while self.prefixes.len() > mark
            && let Some(operator) = self.prefixes.pop()
        {
            node = self.add_node(SyntaxNode::Unary(operator, node))?;
        }
        Ok(node)
    }

    fn parse_coalescing(&mut self, mut node: NodeId) -> Result<NodeId> {
        while self.lexer.token == Token::Nullish {
            self.lexer.advance_over_newlines()?;
            let right = self.parse_postfix()?;
            node = self.add_node(SyntaxNode::Binary(BinaryOperator::Nullish, node, right))?;
        }
        Ok(node)
    }

    fn parse_postfix(&mut self) -> Result<NodeId> {
        // Plain numbers are the most common operand, so they take a shortcut.
        let mut node = if self.lexer.token == Token::Number {
            let number = super::literal::parse_number(&self.lexer)?;
            self.lexer.advance()?;
            self.add_node(SyntaxNode::Number(number))?
        } else {
            self.parse_primary()?
        };
        loop {
            let operator = match self.lexer.token {
                Token::Bang => UnaryOperator::Factorial,
                Token::Quote => UnaryOperator::Transpose,
                _ => return Ok(node),
            };
            self.lexer.advance()?;
            node = self.add_node(SyntaxNode::Unary(operator, node))?;
            node = self.parse_accessors(node)?;
        }
    }

    fn parse_primary(&mut self) -> Result<NodeId> {
        let node = match self.lexer.token {
            Token::DoubleQuote | Token::Quote => {
                let text = self.parse_text()?;
                self.add_node(SyntaxNode::Text(text))?
            }
            Token::OpenBracket => self.parse_matrix()?,
            Token::OpenBrace => self.parse_object()?,
            Token::Open => self.parse_group()?,
            Token::Symbol => self.parse_symbol()?,
            token if token.is_word() => self.parse_symbol()?,
            Token::End => return Err(self.lexer.error("Unexpected end of expression")),
            _ => return Err(self.lexer.error("Value expected")),
        };
        match self.lexer.token {
            Token::Open | Token::OpenBracket | Token::Dot | Token::QuestionDot => {
                self.parse_accessors(node)
            }
            _ => Ok(node),
        }
    }

    fn parse_symbol(&mut self) -> Result<NodeId> {
        let node = match self.lexer.lexeme() {
            "true" => SyntaxNode::True,
            "false" => SyntaxNode::False,
            "null" => SyntaxNode::Null,
            "undefined" => SyntaxNode::Undefined,
            "NaN" => SyntaxNode::Number(f64::NAN),
            "Infinity" => SyntaxNode::Number(f64::INFINITY),
            name => SyntaxNode::Symbol(self.tree.names.intern(name)),
        };
        self.lexer.advance()?;
        self.add_node(node)
    }

    fn parse_text(&mut self) -> Result<u32> {
        let quote = if self.lexer.token == Token::Quote {
            '\''
        } else {
            '"'
        };
        let text = self.lexer.lex_string(quote)?;
        Ok(self.store_text(&text))
    }

    fn store_text(&mut self, text: &str) -> u32 {
        self.tree.texts.push(text.into());
        self.tree.texts.len() as u32 - 1
    }

    fn parse_group(&mut self) -> Result<NodeId> {
        self.open_bracket()?;
        let inner = self.parse_assignment()?;
        self.close_bracket(Token::Close, "Parenthesis ) expected")?;
        self.add_node(SyntaxNode::Group(inner))
    }

    fn open_bracket(&mut self) -> Result<()> {
        self.lexer.nesting += 1;
        self.lexer.advance()
    }

    fn close_bracket(&mut self, token: Token, message: &str) -> Result<()> {
        if self.lexer.token != token {
            return Err(self.lexer.error(message));
        }
        self.lexer.nesting -= 1;
        self.lexer.advance()
    }

    // Applied in a loop, so that `a[1][2]…` costs no stack.
    fn parse_accessors(&mut self, mut node: NodeId) -> Result<NodeId> {
        loop {
            let optional = self.lexer.token == Token::QuestionDot;
            if optional {
                self.lexer.advance()?;
            }
            node = match self.lexer.token {
                Token::Open if self.is_reference(node) => {
                    self.open_bracket()?;
                    let list = self.parse_arguments(Token::Close)?;
                    self.close_bracket(Token::Close, "Parenthesis ) expected")?;
                    self.add_node(SyntaxNode::Call(node, list))?
                }
                Token::OpenBracket => {
                    self.open_bracket()?;
                    let list = self.parse_arguments(Token::CloseBracket)?;
                    self.close_bracket(Token::CloseBracket, "Parenthesis ] expected")?;
                    self.add_node(SyntaxNode::Index {
                        object: node,
                        list,
                        optional,
                    })?
                }
                Token::Dot | Token::Symbol | Token::In
                    if optional || self.lexer.token == Token::Dot =>
                {
                    if !optional {
                        self.lexer.advance()?;
                    }
                    self.parse_property(node, optional)?
                }
                _ if optional => return Err(self.lexer.error("Property name expected after ?.")),
                _ => return Ok(node),
            };
        }
    }

    fn parse_property(&mut self, object: NodeId, optional: bool) -> Result<NodeId> {
        if self.lexer.token != Token::Symbol && !self.lexer.token.is_word() {
            return Err(self.lexer.error("Property name expected after dot"));
        }
        let key = self.store_text(self.lexer.lexeme());
        self.lexer.advance()?;
        self.add_node(SyntaxNode::Property {
            object,
            key,
            optional,
        })
    }

    // Parses arguments up to `end`, which is not consumed.
    fn parse_arguments(&mut self, end: Token) -> Result<NodeList> {
        let mark = self.tree.scratch.len();
        if self.lexer.token == end {
            return Ok(self.finish_list(mark));
        }
        let first = self.parse_assignment()?;
        if self.lexer.token != Token::Comma {
            return Ok(self.single_item_list(first));
        }
        self.tree.scratch.push(first);
        while self.lexer.token == Token::Comma {
            self.lexer.advance()?;
            let argument = self.parse_assignment()?;
            self.tree.scratch.push(argument);
        }
        Ok(self.finish_list(mark))
    }

    fn parse_matrix(&mut self) -> Result<NodeId> {
        self.open_bracket()?;
        let rows = self.tree.scratch.len();
        let mut columns = None;
        let mut single = None;
        while self.lexer.token != Token::CloseBracket {
            let row = self.parse_row()?;
            let SyntaxNode::Array(list) = self.tree.node(row) else {
                return Err(self.lexer.error("Value expected"));
            };
            single = Some(row);
            self.tree.scratch.push(row);
            if self.lexer.token == Token::Semicolon {
                self.lexer.advance()?;
                single = None;
            } else if self.lexer.token != Token::CloseBracket {
                return Err(self.lexer.error("End of matrix ] expected"));
            } else if self.tree.scratch.len() > rows + 1 {
                single = None;
            }
            let expected = *columns.get_or_insert(list.len);
            if list.len != expected {
                // mathjs reports this error at the end of the matrix.
                while self.lexer.token != Token::CloseBracket && self.lexer.token != Token::End {
                    self.lexer.advance()?;
                }
                self.lexer.advance()?;
                return Err(self.lexer.error(format!(
                    "Column dimensions mismatch ({} !== {expected})",
                    list.len
                )));
            }
        }
        self.close_bracket(Token::CloseBracket, "End of matrix ] expected")?;
        if let Some(row) = single {
            self.tree.scratch.truncate(rows);
            return Ok(row);
        }
        let list = self.finish_list(rows);
        self.add_node(SyntaxNode::Array(list))
    }

    fn parse_row(&mut self) -> Result<NodeId> {
        let mark = self.tree.scratch.len();
        loop {
            let item = self.parse_assignment()?;
            self.tree.scratch.push(item);
            if self.lexer.token != Token::Comma {
                break;
            }
            self.lexer.advance()?;
            if matches!(self.lexer.token, Token::CloseBracket | Token::Semicolon) {
                break;
            }
        }
        let list = self.finish_list(mark);
        self.add_node(SyntaxNode::Array(list))
    }

    fn parse_object(&mut self) -> Result<NodeId> {
        let mark = self.tree.scratch.len();
        let mut keys = Vec::new();
        self.open_bracket()?;
        while self.lexer.token != Token::CloseBrace {
            keys.push(self.parse_key()?);
            if self.lexer.token != Token::Colon {
                return Err(self.lexer.error("Colon : expected after object key"));
            }
            self.lexer.advance()?;
            let value = self.parse_assignment()?;
            self.tree.scratch.push(value);
            if self.lexer.token != Token::Comma {
                break;
            }
            self.lexer.advance()?;
        }
        self.close_bracket(
            Token::CloseBrace,
            "Comma , or bracket } expected after object value",
        )?;
        let list = self.finish_list(mark);
        let start = self.tree.texts.len() as u32;
        self.tree.texts.append(&mut keys);
        self.add_node(SyntaxNode::Object { keys: start, list })
    }

    fn parse_key(&mut self) -> Result<std::sync::Arc<str>> {
        match self.lexer.token {
            Token::DoubleQuote => Ok(self.lexer.lex_string('"')?.into()),
            Token::Quote => Ok(self.lexer.lex_string('\'')?.into()),
            token if token == Token::Symbol || token.is_word() => {
                let key = self.lexer.lexeme().into();
                self.lexer.advance()?;
                Ok(key)
            }
            _ => Err(self.lexer.error("Symbol or string expected as object key")),
        }
    }
}

fn prefix_operator(token: Token) -> Option<UnaryOperator> {
    Some(match token {
        Token::Minus => UnaryOperator::Minus,
        Token::Plus => UnaryOperator::Plus,
        Token::Tilde => UnaryOperator::BitNot,
        Token::Not => UnaryOperator::Not,
        _ => return None,
    })
}

fn power_operator(token: Token) -> Option<BinaryOperator> {
    match token {
        Token::Power => Some(BinaryOperator::Power),
        Token::DotPower => Some(BinaryOperator::DotPower),
        _ => None,
    }
}
