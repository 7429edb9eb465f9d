//! The walk over all that `dacapo` makes public, its re-exports from our other crates included.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::render;
use super::rustdoc::{Doc, Item};

const PACKAGE: &str = "dacapo";
/// The crates from which `dacapo` re-exports.
const OTHERS: &[&str] = &["dacapo-client", "dacapo-control", "dacapo-core", "dacapo-engine", "dacapo-worker"];

/// All public items, and which types of our other crates they name.
#[derive(Default)]
pub(super) struct Interface {
    /// A line for each item, sorted by its path.
    pub(super) lines: Vec<String>,
    /// Types that are re-exported, by the path at which they are defined, with their public name.
    pub(super) exported: BTreeMap<String, String>,
    /// Types of our other crates that a signature names, by the path at which they are defined, with one such line.
    pub(super) named: BTreeMap<String, String>,
}

pub(super) fn interface(root: &Path) -> Result<Interface> {
    let own = Doc::of(root, PACKAGE)?;
    let mut docs = BTreeMap::new();
    for package in OTHERS {
        docs.insert(package.replace('-', "_"), Doc::of(root, package)?);
    }
    let mut walk = Walk { docs: &docs, interface: Interface::default(), seen: BTreeSet::new() };
    let crate_root = own.index.get(&own.root).context("rustdoc's JSON has no root")?;
    walk.module(&own, PACKAGE, crate_root);
    let mut interface = walk.interface;
    interface
        .lines
        .sort_by_cached_key(|line| line.find("dacapo::").map(|start| (line[start..].to_owned(), line.clone())));
    interface.lines.dedup();
    Ok(interface)
}

struct Walk<'a> {
    docs: &'a BTreeMap<String, Doc>,
    interface: Interface,
    /// Items that are listed, by the address of their crate and by id: an item may have several names.
    seen: BTreeSet<(usize, u64)>,
}

impl<'a> Walk<'a> {
    fn module(&mut self, doc: &'a Doc, at: &str, module: &'a Item) {
        let public = ids(&module.kind().1["items"]).filter_map(|id| Some((id, doc.index.get(&id)?)));
        let public: Vec<(u64, &Item)> = public.filter(|(_, item)| item.is_public()).collect();
        let (modules, others): (Vec<_>, Vec<_>) = public.into_iter().partition(|(_, item)| item.kind().0 == "module");
        for (id, item) in others {
            match item.kind() {
                ("use", of) => self.export(doc, at, of),
                _ => self.item(doc, at, item.name.as_deref().unwrap_or_default(), (id, item)),
            }
        }
        // What a module, such as the prelude, names again is listed once, where it stands first.
        for (_, item) in modules {
            let at = format!("{at}::{}", item.name.as_deref().unwrap_or_default());
            self.lines(doc, &Value::Null, format!("mod {at}"));
            self.module(doc, &at, item);
        }
    }

    /// `pub use`: of this crate, of one of ours, or of another.
    fn export(&mut self, doc: &'a Doc, at: &str, of: &'a Value) {
        let name = of["name"].as_str().unwrap_or_default();
        if of["is_glob"] == true {
            return self.lines(
                doc,
                &Value::Null,
                format!("use {at}::* = {}", of["source"].as_str().unwrap_or_default()),
            );
        }
        if let Some(item) = doc.item(&of["id"]) {
            match item.kind() {
                ("module", _) if item.is_public() => self.module(doc, &format!("{at}::{name}"), item),
                ("module", _) => {}
                _ => self.item(doc, at, name, (of["id"].as_u64().unwrap_or_default(), item)),
            }
            return;
        }
        let Some(known) = of["id"].as_u64().and_then(|id| doc.paths.get(&id)) else { return };
        let defined = known.path.join("::");
        self.interface.exported.entry(defined.clone()).or_insert_with(|| format!("{at}::{name}"));
        let other = known.path.first().and_then(|of| self.docs.get(of));
        match other.and_then(|other| Some((other, other.find(&known.path)?))) {
            Some((other, found)) if found.1.kind().0 != "module" => self.item(other, at, name, found),
            _ => self.lines(doc, &Value::Null, format!("use {at}::{name} = {} {defined}", known.kind)),
        }
    }

    fn item(&mut self, doc: &'a Doc, at: &str, name: &str, (id, item): (u64, &'a Item)) {
        if !self.seen.insert((std::ptr::from_ref(doc).addr(), id)) {
            return;
        }
        let full = format!("{at}::{name}");
        let (kind, of) = item.kind();
        let generics = render::generics(&of["generics"]);
        match kind {
            "function" => self.lines(doc, of, render::function(&full, of)),
            "constant" => self.lines(doc, of, format!("const {full}: {}", render::ty(&of["type"]))),
            "type_alias" => self.lines(doc, of, format!("type {full}{generics} = {}", render::ty(&of["type"]))),
            "struct" => {
                self.lines(doc, &of["generics"], format!("struct {full}{generics}"));
                let fields = [&of["kind"]["plain"]["fields"], &of["kind"]["tuple"]];
                fields.into_iter().for_each(|fields| self.fields(doc, &full, fields));
                self.impls(doc, &full, &of["impls"]);
            }
            "enum" => {
                self.lines(doc, &of["generics"], format!("enum {full}{generics}"));
                for variant in items(doc, &of["variants"]) {
                    self.variant(doc, &full, variant);
                }
                self.impls(doc, &full, &of["impls"]);
            }
            "trait" => {
                let bounds = render::bounds(&of["bounds"]);
                let bounds = if bounds.is_empty() { bounds } else { format!(": {bounds}") };
                self.lines(doc, &of["bounds"], format!("trait {full}{generics}{bounds}"));
                items(doc, &of["items"]).for_each(|item| self.member(doc, &full, item));
            }
            "proc_macro" => self.lines(doc, &Value::Null, format!("macro {full}")),
            other => self.lines(doc, &Value::Null, format!("{other} {full}")),
        }
    }

    fn fields(&mut self, doc: &'a Doc, of: &str, fields: &Value) {
        for field in items(doc, fields).filter(|field| field.is_public()) {
            let line = format!("{of}.{}: {}", field.name.as_deref().unwrap_or_default(), render::ty(field.kind().1));
            self.lines(doc, field.kind().1, line);
        }
    }

    fn variant(&mut self, doc: &'a Doc, of: &str, variant: &'a Item) {
        let name = format!("{of}::{}", variant.name.as_deref().unwrap_or_default());
        let kind = &variant.kind().1["kind"];
        let shown = |field: &Item| match field.name.as_deref() {
            Some(name) if !name.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("{name}: {}", render::ty(field.kind().1))
            }
            _ => render::ty(field.kind().1),
        };
        let fields = [&kind["tuple"], &kind["struct"]["fields"]];
        let fields: Vec<&Item> = fields.into_iter().flat_map(|fields| items(doc, fields)).collect();
        let all: Vec<String> = fields.iter().map(|field| shown(field)).collect();
        let (open, close) = if kind["tuple"].is_array() { ("(", ")") } else { (" { ", " }") };
        let all = if all.is_empty() { String::new() } else { format!("{open}{}{close}", all.join(", ")) };
        for field in fields {
            self.note(doc, field.kind().1, &name);
        }
        self.lines(doc, &Value::Null, format!("{name}{all}"));
    }

    /// Methods, and traits that a type implements by code of its own.
    fn impls(&mut self, doc: &'a Doc, of: &str, impls: &Value) {
        let mut traits = BTreeSet::new();
        for found in items(doc, impls) {
            let (_, block) = found.kind();
            if block["is_synthetic"] == true || !block["blanket_impl"].is_null() {
                continue;
            }
            if block["trait"].is_null() {
                items(doc, &block["items"]).filter(|item| item.is_public()).for_each(|item| self.member(doc, of, item));
            } else {
                self.note(doc, &block["trait"], of);
                traits.insert(render::path(&block["trait"]));
            }
        }
        let traits: Vec<&str> = traits.iter().map(String::as_str).filter(|of| *of != "StructuralPartialEq").collect();
        if !traits.is_empty() {
            self.lines(doc, &Value::Null, format!("{of}: {}", traits.join(", ")));
        }
    }

    fn member(&mut self, doc: &'a Doc, of: &str, item: &'a Item) {
        let name = format!("{of}::{}", item.name.as_deref().unwrap_or_default());
        let (kind, rest) = item.kind();
        let line = match kind {
            "function" => render::function(&name, rest),
            "assoc_type" => format!("type {name}"),
            "assoc_const" => format!("const {name}: {}", render::ty(&rest["type"])),
            other => format!("{other} {name}"),
        };
        self.lines(doc, rest, line);
    }

    /// Adds a line, and notes which of our types it names.
    fn lines(&mut self, doc: &Doc, signature: &Value, line: String) {
        self.note(doc, signature, &line);
        self.interface.lines.push(line);
    }

    fn note(&mut self, doc: &Doc, signature: &Value, line: &str) {
        let mut found = Vec::new();
        render::named_in(signature, &mut found);
        for known in found.into_iter().filter_map(|id| doc.paths.get(&id)) {
            let ours = known.path.first().is_some_and(|of| of.starts_with("dacapo_"));
            if ours {
                self.interface.named.entry(known.path.join("::")).or_insert_with(|| line.to_owned());
            }
        }
    }
}

fn ids(list: &Value) -> impl Iterator<Item = u64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_u64)
}

fn items<'a>(doc: &'a Doc, list: &Value) -> impl Iterator<Item = &'a Item> + use<'a> {
    let ids: Vec<u64> = ids(list).collect();
    ids.into_iter().filter_map(|id| doc.index.get(&id))
}
