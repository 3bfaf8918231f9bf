// Check a table: as qdtheory/metrics/lint.py does, by the same lint.toml (lint_data.js).
"use strict";

const Lint = (() => {
  const { rules, names, shares, sizes, errors, ...patterns } = LINT;
  const NAMES = new Map(
    Object.entries(names).flatMap(([m, all]) => all.split(" ").map((x) => [x, m])),
  );
  const LETTERS = [..."abcdef"];

  const fill = (text, words) => text.replace(/\{(\w+)\}/g, (_, x) => words[x]);
  const refuse = (name, words) => {
    throw new Error(fill(errors[name], words));
  };

  function cells(table) {
    const lines = table
      .split(/\r\n|[\n\r]/)
      .filter((line) => !new RegExp(patterns.rule_lines).test(line));
    const mark = patterns.separators.find((m) => lines.every((x) => x.includes(m)));
    if (!mark || lines.length < 2) refuse("table");
    const between = new RegExp(`\\${mark}(?=(?:[^"]*"[^"]*")*[^"]*$)`);
    let rows = lines.map((line) =>
      (mark === "|" ? line.trim().replace(/^\|+|\|+$/g, "") : line)
        .split(between)
        .map((x) => x.replace(new RegExp(patterns.typography, "g"), "").trim()),
    );
    if (rows.some((row) => row.length !== rows[0].length)) refuse("table");
    if (!rows[0].some((title) => key(title)[0])) {
      rows = rows[0].map((_, i) => rows.map((row) => row[i]));
    }
    const named = !key(rows[0][0])[0];
    return named ? rows : rows.map((row, i) => [i ? `row ${i}` : "", ...row]);
  }

  // The metric and the order that the head of a column names.
  function key(title) {
    const word = title
      .toLowerCase()
      .replace(new RegExp(patterns.remarks, "g"), "")
      .replace(/[^a-z0-9]/g, "");
    const base = NAMES.has(word)
      ? word
      : word.replace(new RegExp(patterns.deviation), "");
    const metric = NAMES.get(base) ?? NAMES.get(base.replace(/\d/g, "")) ?? "";
    const order = NAMES.has(base) ? 0 : Number(base.replace(/\D/g, ""));
    return [metric && metric + (base === word ? "" : "-deviation"), order];
  }

  function entries(head, keys, row) {
    const found = new Map();
    row.forEach((text, i) => {
      const [metric, order] = keys[i];
      const plain = text.toLowerCase().replaceAll("\u2212", "-");
      if (!metric || new RegExp(patterns.missing).test(plain)) return;
      const match = plain.match(new RegExp(patterns.entry));
      if (!match) {
        refuse("entry", { row: row[0], title: head[i], got: text.slice(0, 40) });
      }
      const printed = text + (head[i].includes("%") ? "%" : "");
      [metric, `${metric}-deviation`].forEach((name, j) => {
        const number = match[j + 2];
        if (!number) return;
        const [mantissa, exponent] = number.split("e");
        const digits = (mantissa.split(".")[1] ?? "").length - Number(exponent ?? 0);
        const half = sizes.includes(metric) ? 0 : 10 ** -digits / 2;
        const lo = match[1] === "<" ? -Infinity : Number(number) - half;
        const hi = match[1] === ">" ? Infinity : Number(number) + half;
        found.set(called([name, order]), { text: printed, lo, hi });
      });
    });
    return found;
  }

  const called = ([metric, order]) => metric + (order > 0 ? `-${order}` : "");

  function product(lists) {
    return lists.reduce(
      (heads, list) => heads.flatMap((head) => list.map((x) => [...head, x])),
      [[]],
    );
  }

  // The columns that a rule may be about, with the orders that its letters stand for.
  function* places(rule, keys) {
    for (const x of rule.each ?? [""]) {
      const wanted = rule.columns.map((c) => c.replace("X", x).match(/^(.*)-(.)$/));
      const there = wanted.map(([, m]) => keys.filter(([metric]) => metric === m));
      for (const columns of product(there)) {
        const orders = {};
        const same = columns.map(
          ([, n], i) => (orders[wanted[i][2]] ??= n) === n,
        );
        if (same.every(Boolean)) {
          const titles = columns.map(called);
          const words = Object.fromEntries(titles.map((t, i) => [LETTERS[i], t]));
          yield { titles, orders, words: { ...orders, ...words } };
        }
      }
    }
  }

  function value(formula, orders, chosen) {
    const letters = [..."mnks"].map((letter) => orders[letter]);
    return LINT_FORMULAS[formula](...letters, ...chosen);
  }

  function pick(body, number) {
    const all = body.map((_, i) => i);
    if (number === 1) return all.map((i) => [i]);
    return product([all, all]).filter(([i, j]) => i !== j);
  }

  // The same findings as check_table, and how each column is read.
  function check(table, given = {}, unit = "") {
    let [head, ...rows] = cells(table);
    for (const [name, size] of Object.entries(given)) {
      if (!sizes.includes(name)) {
        refuse("given", { known: sizes.join(", "), got: name });
      }
      head = [...head, name];
      rows = rows.map((row) => [...row, String(size)]);
    }
    const keys = head.map(key);
    const known = keys.filter(([metric]) => metric);
    if (!known.some(([metric]) => !sizes.includes(metric))) refuse("unknown");
    const titles = keys.map(called);
    const twice = head.filter(
      (_, i) => titles[i] && titles.filter((t) => t === titles[i]).length > 1,
    );
    if (twice.length) refuse("twice", { got: twice.join(" and ") });
    const body = rows.map((row) => entries(head, keys, row));
    const percent = new Set();
    for (const metric of shares) {
      const own = known
        .filter(([m]) => m === metric)
        .flatMap((k) => body.map((row) => row.get(called(k))))
        .filter(Boolean);
      const signs = own.some((entry) => entry.text.includes("%"));
      const above = own.filter((entry) => entry.lo > 1).length;
      if (unit === "percent" || (!unit && (signs || 2 * above > own.length))) {
        percent.add(metric).add(`${metric}-deviation`);
      }
    }
    const there = new Map();
    for (const row of body) {
      for (const [title, entry] of row) {
        const [, metric, order] = title.match(/^(.*?)(?:-(\d+))?$/);
        there.set(title, [metric, Number(order ?? 0)]);
        if (percent.has(metric)) {
          entry.lo /= 100;
          entry.hi /= 100;
        }
      }
    }
    const sorted = [...there.values()].sort(
      ([a, m], [b, n]) => (a > b) - (a < b) || m - n,
    );
    const found = [];
    for (const rule of rules) {
      for (const { titles, orders, words } of places(rule, sorted)) {
        for (const places of pick(body, rule.rows ?? 1)) {
          const chosen = places.flatMap((i) => titles.map((t) => body[i].get(t)));
          if (!chosen.every(Boolean)) continue;
          if (!value(rule.when, orders, chosen)) continue;
          const low = value(rule.low, orders, chosen);
          const high = value(rule.high, orders, chosen);
          if (!Number.isFinite(low - high)) continue;
          if (low - high <= 1e-9 * Math.max(1, Math.abs(high))) continue;
          found.push({
            row: places.map((i) => rows[i][0]).join(" and "),
            entries: chosen.map((entry) => entry.text),
            low,
            high,
            says: fill(rule.says, words),
            unless: fill(rule.unless, words),
            shown: rule.shown,
          });
        }
      }
    }
    found.sort((a, b) => Boolean(a.unless) - Boolean(b.unless));
    const read = head.map((title, i) => {
      const as = percent.has(keys[i][0]) ? " as percent" : " as fraction";
      return [title, titles[i] + (shares.includes(keys[i][0]) ? as : "")];
    });
    return { found, read: Object.fromEntries(read.filter(([title]) => title)) };
  }

  return { check };
})();

// The box of lint.md.
(() => {
  const app = document.getElementById("lint-app");
  if (!app) return;
  const find = (name) => document.getElementById(`lint-${name}`);
  const digits = (x) => String(Number(x.toPrecision(6)));

  function line(finding) {
    const item = document.createElement("li");
    const { row, entries, says, low, high, unless, shown } = finding;
    const strong = document.createElement("strong");
    strong.textContent = `${row}: ${entries.join(", ")}`;
    const end = unless ? `, unless ${unless}` : "";
    const sides = `${says}, here ${digits(low)} > ${digits(high)}`;
    item.append(strong, ` cannot be${end}: ${sides} (${shown}).`);
    return item;
  }

  function given() {
    const sizes = {};
    for (const word of find("given").value.split(/[\s,]+/).filter(Boolean)) {
      const [, name, number] = word.match(/^(\w+)=(\d+)$/) ?? [];
      if (!name) throw new Error(`expected sizes such as length=20, got ${word}`);
      sizes[name] = Number(number);
    }
    return sizes;
  }

  function update() {
    find("error").textContent = "";
    find("found").replaceChildren();
    find("summary").textContent = find("read").textContent = "";
    if (!find("table").value.trim()) return;
    try {
      const { found, read } = Lint.check(find("table").value, given(), find("unit").value);
      find("found").append(...found.map(line));
      const sure = found.filter((finding) => !finding.unless).length;
      find("summary").textContent = found.length
        ? `Findings: ${sure}, and ${found.length - sure} with exceptions.`
        : "Nothing here is impossible.";
      const known = Object.values(read).filter(Boolean);
      const rest = Object.keys(read).filter((title) => !read[title]);
      find("read").textContent =
        `Read: ${known.join(", ")}. Not read: ${rest.join(", ") || "nothing"}.`;
    } catch (refusal) {
      find("error").textContent = refusal.message;
    }
  }

  for (const name of ["table", "given", "unit"]) {
    find(name).addEventListener("input", update);
  }
  app.hidden = false;
  update();
})();
