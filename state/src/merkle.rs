//! A persistent Merkle map from `(kind, id)` to the digest of an item, whose root is the `state_root`.
//!
//! A compressed binary radix tree over the SHA-256 of the key: its shape, and so its root, depends on what it holds and
//! never on the order of insertion. A change makes O(log n) new nodes and shares the rest; a clone is O(1). Node hashes
//! are made when a root is asked for, so that a commit of many changes hashes each node once. Spec: design §4.

use closer_contracts::Digest;
use closer_contracts::canonical::hash_parts;
use closer_contracts::id::Id;
use closer_contracts::item::ItemKind;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

type Path = [u8; 32];

fn path_of(kind: ItemKind, id: &Id) -> Path {
    *hash_parts("closer.merkle.key.v1", &[kind.as_str().as_bytes(), id.as_str().as_bytes()]).raw()
}

/// The bit of a path, counted from its most significant one.
fn is_right(path: &Path, bit: u8) -> bool {
    path.get(usize::from(bit / 8)).is_some_and(|byte| byte & (0x80 >> (bit % 8)) != 0)
}

/// The first bit in which two paths differ.
fn first_difference(a: &Path, b: &Path) -> Option<u8> {
    let (at, x, y) = a.iter().zip(b).zip(0u8..).find_map(|((x, y), at)| (x != y).then_some((at, x, y)))?;
    u8::try_from(u32::from(at) * 8 + (x ^ y).leading_zeros()).ok()
}

fn hash_leaf(path: &Path, value: &Digest) -> Digest {
    hash_parts("closer.merkle.leaf.v1", &[path, value.raw()])
}

fn hash_branch(bit: u8, left: &Digest, right: &Digest) -> Digest {
    hash_parts("closer.merkle.branch.v1", &[&[bit], left.raw(), right.raw()])
}

#[derive(Debug)]
enum Shape {
    Leaf { path: Path, value: Digest },
    // INVARIANT: every path below agrees in the bits before `bit`; `bit` itself sends it left (0) or right (1).
    Branch { bit: u8, left: Arc<Node>, right: Arc<Node> },
}

#[derive(Debug)]
struct Node {
    shape: Shape,
    hash: OnceLock<Digest>,
}

impl Node {
    fn new(shape: Shape) -> Arc<Self> {
        Arc::new(Self { shape, hash: OnceLock::new() })
    }

    fn branch(bit: u8, left: Arc<Self>, right: Arc<Self>) -> Arc<Self> {
        Self::new(Shape::Branch { bit, left, right })
    }

    fn hash(&self) -> Digest {
        *self.hash.get_or_init(|| match &self.shape {
            Shape::Leaf { path, value } => hash_leaf(path, value),
            Shape::Branch { bit, left, right } => hash_branch(*bit, &left.hash(), &right.hash()),
        })
    }

    /// The leaf that the path leads to, which is the only one that can hold it.
    fn nearest(&self, path: &Path) -> (&Path, &Digest) {
        let mut node = self;
        loop {
            match &node.shape {
                Shape::Leaf { path, value } => return (path, value),
                Shape::Branch { bit, left, right } => node = if is_right(path, *bit) { right } else { left },
            }
        }
    }

    /// This tree with a leaf put where its path first differs (`at`), or in place of the leaf with the same path.
    fn with(self: &Arc<Self>, path: &Path, at: Option<u8>, leaf: Arc<Self>) -> Arc<Self> {
        match &self.shape {
            Shape::Branch { bit, left, right } if at.is_none_or(|at| *bit < at) => match is_right(path, *bit) {
                true => Self::branch(*bit, left.clone(), right.with(path, at, leaf)),
                false => Self::branch(*bit, left.with(path, at, leaf), right.clone()),
            },
            Shape::Branch { .. } | Shape::Leaf { .. } => match at {
                None => leaf,
                Some(at) if is_right(path, at) => Self::branch(at, self.clone(), leaf),
                Some(at) => Self::branch(at, leaf, self.clone()),
            },
        }
    }

    /// This tree without the leaf that the path leads to; a branch with one child is replaced by it.
    fn without(&self, path: &Path) -> Option<Arc<Self>> {
        let Shape::Branch { bit, left, right } = &self.shape else {
            return None;
        };
        let (child, sibling, goes_right) = match is_right(path, *bit) {
            true => (right, left, true),
            false => (left, right, false),
        };
        Some(match (child.without(path), goes_right) {
            (None, _) => sibling.clone(),
            (Some(child), true) => Self::branch(*bit, sibling.clone(), child),
            (Some(child), false) => Self::branch(*bit, child, sibling.clone()),
        })
    }
}

/// The map. Spec: design §4.
#[derive(Debug, Clone, Default)]
pub struct Merkle {
    top: Option<Arc<Node>>,
}

impl Merkle {
    /// The root over all entries; the same for the same entries, in whatever order they came.
    #[must_use]
    pub fn root(&self) -> Digest {
        match &self.top {
            Some(node) => node.hash(),
            None => hash_parts("closer.merkle.empty.v1", &[]),
        }
    }

    /// The digest held for an item.
    #[must_use]
    pub fn get(&self, kind: ItemKind, id: &Id) -> Option<Digest> {
        let path = path_of(kind, id);
        let (found, value) = self.top.as_ref()?.nearest(&path);
        (*found == path).then_some(*value)
    }

    /// Sets the digest of an item.
    pub fn insert(&mut self, kind: ItemKind, id: &Id, value: Digest) {
        let path = path_of(kind, id);
        let leaf = Node::new(Shape::Leaf { path, value });
        self.top = Some(match &self.top {
            None => leaf,
            Some(node) => node.with(&path, first_difference(node.nearest(&path).0, &path), leaf),
        });
    }

    /// Removes an item, if it is there.
    pub fn remove(&mut self, kind: ItemKind, id: &Id) {
        if self.get(kind, id).is_some() {
            self.top = self.top.as_ref().and_then(|node| node.without(&path_of(kind, id)));
        }
    }

    /// The proof that the item is held with its digest, against the current root.
    #[must_use]
    pub fn prove(&self, kind: ItemKind, id: &Id) -> Option<Proof> {
        self.get(kind, id)?;
        let path = path_of(kind, id);
        let mut steps = Vec::new();
        let mut node = self.top.as_ref()?;
        while let Shape::Branch { bit, left, right } = &node.shape {
            let (child, sibling) = match is_right(&path, *bit) {
                true => (right, left),
                false => (left, right),
            };
            steps.push(Step { bit: *bit, sibling: sibling.hash() });
            node = child;
        }
        steps.reverse();
        Some(Proof { steps })
    }
}

/// One level of a proof: the bit that was decided there and the hash of the other side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The bit of the path, counted from its most significant one.
    pub bit: u8,
    /// The hash of the side that the path does not take.
    pub sibling: Digest,
}

/// A proof of inclusion, from the leaf to the root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The levels, the deepest first.
    pub steps: Vec<Step>,
}

impl Proof {
    /// Whether the item is held with this digest under this root.
    #[must_use]
    pub fn verify(&self, root: &Digest, kind: ItemKind, id: &Id, value: &Digest) -> bool {
        let path = path_of(kind, id);
        let rises = self.steps.is_sorted_by(|deeper, upper| deeper.bit > upper.bit);
        let reached = self.steps.iter().fold(hash_leaf(&path, value), |hash, step| match is_right(&path, step.bit) {
            true => hash_branch(step.bit, &step.sibling, &hash),
            false => hash_branch(step.bit, &hash, &step.sibling),
        });
        rises && reached == *root
    }
}
