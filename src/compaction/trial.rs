//! A copy of the view on which a plan is tried.

use std::sync::Arc;

use crate::compaction::Draft;
use crate::overlay::{Layer, Origin, Overlay, Size};
use crate::transcript::{At, Entry, Event};
use crate::view::View;

/// A view with the overlays of a plan laid on it, and the plan.
#[derive(Debug)]
pub(super) struct Trial {
    view: View,
    origin: Origin,
    reason: String,
    drafts: Vec<Draft>,
}

impl Trial {
    /// Begins a plan on a copy of the view.
    pub(super) fn new(view: &View, origin: Origin, reason: String) -> Self {
        Self {
            view: view.clone(),
            origin,
            reason,
            drafts: Vec::new(),
        }
    }

    /// The view as it is with the plan so far.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Whether the plan is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// The overlays planned.
    pub(super) fn into_drafts(self) -> Vec<Draft> {
        self.drafts
    }

    /// Lays a layer if it makes the next request shorter; returns whether it did.
    pub(super) fn lay(&mut self, rule: &'static str, layer: Option<Layer>) -> bool {
        let Some(layer) = layer else { return false };
        let before = (self.view.chars(), self.view.estimate().tokens);
        let mut view = self.view.clone();
        let id = view.transcript().next_id();
        let pass = id;
        let reason = String::new();
        let overlay = Overlay {
            origin: self.origin,
            rule: rule.to_owned(),
            pass,
            layer,
            size: Size::default(),
            reason,
        };
        let entry = Entry {
            id,
            at: At::default(),
            event: Event::Overlay(overlay.clone()),
        };
        view.take(Arc::new(entry));
        if view.chars().all >= before.0.all {
            return false;
        }
        let size = Size {
            before: before.1,
            after: view.estimate().tokens,
        };
        self.drafts.push(Draft {
            rule,
            layer: overlay.layer,
            size,
            reason: self.reason.clone(),
        });
        self.view = view;
        true
    }
}
