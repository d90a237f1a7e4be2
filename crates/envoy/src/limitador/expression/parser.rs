//! The grammar of expressions.

use super::{
    Comparison, EntryName, Expression,
    token::{Token, tokens},
};

/// Maximum length of an expression in bytes.
const MAX_BYTES: usize = 8192;

/// Maximum depth of parentheses and negations.
const MAX_DEPTH: usize = 32;

/// Name of the list of descriptors.
const DESCRIPTORS: &str = "descriptors";

/// Parses an expression.
pub(in crate::limitador) fn parse(text: &str) -> Result<Expression, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let expression = parser.any()?;
    match parser.peek() {
        None => Ok(expression),
        Some(token) => Err(unexpected(token)),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    /// Alternatives.
    fn any(&mut self) -> Result<Expression, String> {
        let mut expression = self.all()?;
        while self.take("||") {
            expression = Expression::Any(Box::new([expression, self.all()?]));
        }
        Ok(expression)
    }

    fn all(&mut self) -> Result<Expression, String> {
        let mut expression = self.comparison()?;
        while self.take("&&") {
            expression = Expression::All(Box::new([expression, self.comparison()?]));
        }
        Ok(expression)
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let left = self.unary()?;
        let Some(comparison) = self.operator() else { return Ok(left) };
        let right = self.unary()?;
        Ok(Expression::Compare(comparison, Box::new([left, right])))
    }

    fn operator(&mut self) -> Option<Comparison> {
        let comparison = match self.peek()? {
            Token::Symbol("==") => Comparison::Equal,
            Token::Symbol("!=") => Comparison::NotEqual,
            Token::Symbol("<") => Comparison::Less,
            Token::Symbol("<=") => Comparison::LessOrEqual,
            Token::Symbol(">") => Comparison::Greater,
            Token::Symbol(">=") => Comparison::GreaterOrEqual,
            Token::Name(name) if name == "in" => Comparison::In,
            _ => return None,
        };
        self.at += 1;
        Some(comparison)
    }

    fn unary(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        let expression = if self.take("!") {
            Expression::Not(Box::new(self.unary()?))
        } else {
            let operand = self.operand()?;
            self.calls(operand)?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        match self.next()? {
            Token::Text(text) => Ok(Expression::Text(text)),
            Token::Integer(number) => Ok(Expression::Integer(number)),
            Token::Symbol("(") => {
                let inner = self.any()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("[") => Ok(Expression::List(self.list("]")?)),
            Token::Name(name) if name == "true" || name == "false" => {
                Ok(Expression::Boolean(name == "true"))
            }
            Token::Name(name) if self.take("(") => Ok(Expression::Call(name, self.list(")")?)),
            Token::Name(name) if name == DESCRIPTORS && self.take("[") => self.descriptor(),
            Token::Name(key) => Ok(Expression::Entry(EntryName { descriptor: None, key })),
            token @ Token::Symbol(_) => Err(unexpected(&token)),
        }
    }

    /// A descriptor by its index, or an entry of it.
    fn descriptor(&mut self) -> Result<Expression, String> {
        let Token::Integer(index) = self.next()? else {
            return Err(format!("the index in {DESCRIPTORS}[...] is not a number"));
        };
        self.expect("]")?;
        let index = u64::try_from(index).map_err(|_| "a negative index".to_owned())?;
        if !self.take("[") {
            return Ok(Expression::Descriptor(index));
        }
        let Token::Text(key) = self.next()? else {
            return Err(format!("the key in {DESCRIPTORS}[{index}][...] is not a string"));
        };
        self.expect("]")?;
        Ok(Expression::Entry(EntryName { descriptor: Some(index), key }))
    }

    /// Selections and calls after an operand: `.name` and `.name(arguments)`.
    fn calls(&mut self, mut target: Expression) -> Result<Expression, String> {
        while self.take(".") {
            let Token::Name(name) = self.next()? else {
                return Err("a name is missing after a dot".to_owned());
            };
            target = if self.take("(") {
                let arguments = self.list(")")?;
                Expression::Call(name, [target].into_iter().chain(arguments).collect())
            } else {
                select(target, &name)?
            };
        }
        Ok(target)
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expression>, String> {
        let mut items = Vec::new();
        while !self.take(end) {
            if !items.is_empty() {
                self.expect(",")?;
            }
            items.push(self.any()?);
        }
        Ok(items)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Result<Token, String> {
        let token = self.peek().cloned().ok_or_else(|| "it ends too early".to_owned())?;
        self.at += 1;
        Ok(token)
    }

    /// Skips a symbol, if it is next.
    fn take(&mut self, symbol: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Symbol(next)) if *next == symbol);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<(), String> {
        if self.take(symbol) { Ok(()) } else { Err(format!("{symbol} is missing")) }
    }
}

/// Returns an entry of a descriptor. Keys may contain dots.
fn select(target: Expression, name: &str) -> Result<Expression, String> {
    match target {
        Expression::Descriptor(index) => {
            Ok(Expression::Entry(EntryName { descriptor: Some(index), key: name.to_owned() }))
        }
        Expression::Entry(EntryName { descriptor, key }) => {
            Ok(Expression::Entry(EntryName { descriptor, key: format!("{key}.{name}") }))
        }
        _ => Err(format!("unexpected .{name}")),
    }
}

fn unexpected(token: &Token) -> String {
    match token {
        Token::Name(name) => format!("unexpected {name}"),
        Token::Text(text) => format!("unexpected {text:?}"),
        Token::Integer(number) => format!("unexpected {number}"),
        Token::Symbol(symbol) => format!("unexpected {symbol}"),
    }
}
