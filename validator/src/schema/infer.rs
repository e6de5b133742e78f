//! A schema into a shape.
//!
//! Conditions (`if`, `not`, `dependentSchemas`) are left out: a shape is a superset of what a schema admits, and
//! leaving out a restriction keeps it one.

use super::shape::{Additional, Property, Shape, Types};
use crate::load::{Kind, Node, Span};

/// Subschemas and merged properties that one collection may amount to once references are followed; a few hundred is
/// usual.
const STEPS_MAX: usize = 200_000;

/// Schemas within schemas, references included, that are followed at once; it bounds the stack.
const LEVELS_MAX: usize = 96;

/// Levels below which locations are anything; deeper ones make no columns, and recursive schemas end here.
const DEPTH_MAX: usize = 24;

/// Infers a shape; an error is the place at which there was too much of it.
pub(super) fn infer(root: &Node) -> Result<Shape, Span> {
    let mut inference = Inference {
        root,
        steps_left: STEPS_MAX,
        level: 0,
        references: Vec::new(),
    };
    let shape = inference.shape(root, 0)?;
    // A collection holds objects.
    Ok(shape.intersect(Shape::of(Types::OBJECT, root.span)))
}

struct Inference<'n> {
    root: &'n Node,
    steps_left: usize,
    level: usize,
    /// References that are being followed: meeting one again is recursion.
    references: Vec<String>,
}

impl<'n> Inference<'n> {
    fn spend(&mut self, steps: usize, node: &Node) -> Result<(), Span> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(node.span)?;
        Ok(())
    }

    fn shape(&mut self, node: &'n Node, depth: usize) -> Result<Shape, Span> {
        self.spend(1, node)?;
        match &node.kind {
            Kind::Bool(false) => return Ok(Shape::of(Types::NONE, node.span)),
            Kind::Object(_) if depth < DEPTH_MAX && self.level < LEVELS_MAX => {}
            _ => return Ok(Shape::any(node.span)),
        }
        self.level += 1;
        let shape = self.object(node, depth);
        self.level -= 1;
        shape
    }

    fn object(&mut self, node: &'n Node, depth: usize) -> Result<Shape, Span> {
        let mut shape = self.own(node, depth)?;
        if let Some(text) = node.get("$ref").and_then(Node::text)
            && let Some(target) = self.root.at(&decoded(text))
        {
            let more = if self.references.iter().any(|it| it == text) {
                Shape::of(types(target), target.span)
            } else {
                self.references.push(text.to_owned());
                let more = self.shape(target, depth)?;
                self.references.pop();
                more
            };
            shape = shape.intersect(more);
        }
        for branch in node.get("allOf").and_then(Node::list).unwrap_or_default() {
            let more = self.shape(branch, depth)?;
            self.spend(shape.properties.len() + more.properties.len(), node)?;
            shape = shape.intersect(more);
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(branches) = node.get(keyword).and_then(Node::list) else {
                continue;
            };
            let mut either: Option<Shape> = None;
            for branch in branches {
                let more = self.shape(branch, depth)?;
                either = Some(match either {
                    Some(shape) => {
                        self.spend(shape.properties.len() + more.properties.len(), node)?;
                        shape.union(more)
                    }
                    None => more,
                });
            }
            if let Some(either) = either {
                shape = shape.intersect(either);
            }
        }
        Ok(shape)
    }

    /// Reads the keywords of one schema object, without what it refers to.
    fn own(&mut self, node: &'n Node, depth: usize) -> Result<Shape, Span> {
        let mut shape = Shape::any(node.span);
        shape.types = types(node);
        let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
        shape.format = text("format");
        shape.content_encoding = text("contentEncoding");
        shape.title = text("title");
        shape.description = text("description");
        shape.default = node.get("default").map(Node::to_value);
        shape.reduce = node.get("reduce").map(|reduce| {
            let strategy = reduce.get("strategy").and_then(Node::text);
            (strategy.unwrap_or_default().to_owned(), reduce.span)
        });
        shape.additional = match node.get("additionalProperties") {
            None => Additional::Anything,
            Some(more) if more.boolean() == Some(false) => Additional::Nothing,
            Some(more) => Additional::Like(Box::new(self.shape(more, depth + 1)?)),
        };
        if node.get("patternProperties").is_some() {
            shape.additional = Additional::Anything;
        }
        for entry in node.get("properties").map_or(&[][..], Node::entries) {
            let property = Property {
                shape: self.shape(&entry.value, depth + 1)?,
                required: false,
            };
            shape.properties.insert(entry.key.clone(), property);
        }
        for name in node
            .get("required")
            .and_then(Node::list)
            .unwrap_or_default()
        {
            let Some(text) = name.text() else { continue };
            if let Some(property) = shape.properties.get_mut(text) {
                property.required = true;
                continue;
            }
            let imputed = match &shape.additional {
                Additional::Anything => Shape::any(name.span),
                Additional::Nothing => Shape::of(Types::NONE, name.span),
                Additional::Like(like) => (**like).clone(),
            };
            let property = Property {
                shape: imputed,
                required: true,
            };
            shape.properties.insert(text.to_owned(), property);
        }
        Ok(shape)
    }
}

fn types(node: &Node) -> Types {
    let named = |node: &Node| node.text().and_then(Types::named);
    let mut types = match node.get("type") {
        None => Types::ANY,
        Some(one) if one.text().is_some() => named(one).unwrap_or(Types::ANY),
        Some(several) => several
            .list()
            .unwrap_or_default()
            .iter()
            .filter_map(named)
            .fold(Types::NONE, Types::or),
    };
    if let Some(value) = node.get("const") {
        types = types.and(Types::of(&value.to_value()));
    }
    if let Some(values) = node.get("enum").and_then(Node::list) {
        let listed = values
            .iter()
            .map(|value| Types::of(&value.to_value()))
            .fold(Types::NONE, Types::or);
        types = types.and(listed);
    }
    types
}

/// Returns the JSON pointer of a reference within the bundle.
fn decoded(reference: &str) -> String {
    let fragment = reference.strip_prefix('#').unwrap_or(reference);
    super::bundle::percent_decoded(fragment)
}
