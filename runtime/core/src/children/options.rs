//! The options of a kind of children.

/// How a child changes that differs from what is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateStrategy {
    /// It is changed in its place.
    InPlace,
    /// It is deleted, and made anew once it is gone.
    Recreate,
    /// It stays as it is until another client deletes it.
    OnDelete,
}

/// What becomes of a child that a complete call did not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruning {
    /// It is deleted.
    Prune,
    /// It stays.
    Keep,
}

/// How many children of one owner change at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateOrder {
    /// All of them.
    AllAtOnce,
    /// One after the other: the next one changes when the one before is ready.
    OneAtATime,
}

/// The part of the children that is kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildContents {
    /// Their metadata.
    Metadata,
    /// All of them.
    Bodies,
}

/// The options of a kind of children, from its entry in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildOptions {
    /// How a child changes.
    pub update: UpdateStrategy,
    /// Whether a child that is not applied any more is deleted.
    pub pruning: Pruning,
    /// How many of them change at once.
    pub order: UpdateOrder,
    /// The part of them that is kept in memory.
    pub contents: ChildContents,
}

// === impl ChildOptions ===

impl ChildOptions {
    /// Children that change in place and all at once, are pruned, and are kept as metadata.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            update: UpdateStrategy::InPlace,
            pruning: Pruning::Prune,
            order: UpdateOrder::AllAtOnce,
            contents: ChildContents::Metadata,
        }
    }

    /// Sets how a child changes.
    #[must_use]
    pub const fn update(mut self, update: UpdateStrategy) -> Self {
        self.update = update;
        self
    }

    /// Sets whether a child that is not applied any more is deleted.
    #[must_use]
    pub const fn pruning(mut self, pruning: Pruning) -> Self {
        self.pruning = pruning;
        self
    }

    /// Sets how many of them change at once.
    #[must_use]
    pub const fn order(mut self, order: UpdateOrder) -> Self {
        self.order = order;
        self
    }

    /// The part of them that is kept in memory: all, if the next one waits for their readiness.
    #[must_use]
    pub const fn kept(&self) -> ChildContents {
        match self.order {
            UpdateOrder::AllAtOnce => self.contents,
            UpdateOrder::OneAtATime => ChildContents::Bodies,
        }
    }

    /// Sets the part of them that is kept in memory.
    #[must_use]
    pub const fn contents(mut self, contents: ChildContents) -> Self {
        self.contents = contents;
        self
    }
}

impl Default for ChildOptions {
    fn default() -> Self {
        Self::new()
    }
}
