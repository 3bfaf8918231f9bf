// Formulas in one variable, read as qdtheory/formulas/expressions.py reads them: the same
// grammar, limits and messages, which the tests compare. Nothing is ever executed: the
// text becomes a tree, the tree a function of x.
//
//   const g = Formulas.read("-x*log(x)");  // or an Error whose message is one line
//   g.jet(0.5)                             // [value, slope, curvature]
"use strict";

const Formulas = (() => {
  // What to allow and what to say comes from Python, through explorer_data.py.
  const { allowed, habits, limits, names } = EXPLORER.formulas;
  const FUNCTIONS = ["log", "exp", "sqrt"];
  const NUMBER = /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/y;
  const NAME = /[A-Za-z_]\w*/y;
  const OPERATOR = /\*\*|[-+*/(),]/y;

  function refused(why, text) {
    const hints = habits.filter(([habit]) => new RegExp(habit).test(text)).map(([, hint]) => hint);
    return new Error([why, allowed, ...hints].join("; "));
  }

  // --- Fractions of whole numbers of any size: 0.1 + 0.2 - 0.3 is 0 ------------------
  const size = (n) => (n < 0n ? -n : n);

  function fraction(n, d = 1n) {
    let [a, b] = [size(n), size(d)];
    while (b) [a, b] = [b, a % b];
    const sign = d < 0n ? -a : a;
    return { n: n / sign, d: d / sign };
  }

  const isFraction = (tree) => typeof tree === "object" && "n" in tree;
  const toNumber = ({ n, d }) => Number(n) / Number(d);

  function decimal(text) {
    const [digits, exponent = "0"] = text.toLowerCase().split("e");
    const [whole, part = ""] = digits.split(".");
    const power = Number(exponent) - part.length;
    const n = BigInt(whole + part);
    return power < 0 ? fraction(n, 10n ** BigInt(-power)) : fraction(n * 10n ** BigInt(power));
  }

  const EXACT = {
    "+": (a, b) => fraction(a.n * b.d + b.n * a.d, a.d * b.d),
    "-": (a, b) => fraction(a.n * b.d - b.n * a.d, a.d * b.d),
    "*": (a, b) => fraction(a.n * b.n, a.d * b.d),
    "/": (a, b) => fraction(a.n * b.d, a.d * b.n),
    "**": (a, { n }) => (n < 0n ? fraction(a.d ** -n, a.n ** -n) : fraction(a.n ** n, a.d ** n)),
    plus: (a) => a,
    minus: (a) => fraction(-a.n, a.d),
  };
  const SPECIAL = { "sqrt 0": fraction(0n), "sqrt 1": fraction(1n), "log 1": fraction(0n), "exp 0": fraction(1n) };

  // --- Text to nodes {name, operands, start, end} ------------------------------------
  function tokens(text) {
    const found = [];
    for (let start = 0; start < text.length; ) {
      if (text[start] === " ") {
        start += 1;
        continue;
      }
      const kinds = { number: NUMBER, name: NAME, operator: OPERATOR };
      const [kind, match] = Object.entries(kinds)
        .map(([kind, pattern]) => {
          pattern.lastIndex = start;
          return [kind, pattern.exec(text)];
        })
        .find(([, match]) => match) ?? [null, null];
      const end = match && start + match[0].length;
      // As in Python: no number runs into a letter or a point, and 007 is no number.
      const broken = kind === "number" && (/[\w.]/.test(text[end] ?? "") || /^0+[1-9]\d*$/.test(match[0]));
      if (!match || broken) throw refused(`'${text}' is not an expression`, text);
      found.push({ kind, text: match[0], start, end });
      start = end;
    }
    return found;
  }

  // Recursive descent: a sum of products of signed powers of atoms.
  function parse(text) {
    const line = tokens(text);
    let place = 0;
    let count = 0;
    const next = () => line[place]?.text;

    function node(name, operands, start, end) {
      count += 1;
      return { name, operands, start, end };
    }

    function chain(operators, operand) {
      const start = line[place]?.start;
      let left = operand();
      while (operators.includes(next())) {
        const name = line[place++].text;
        const right = operand();
        left = node(name, [left, right], start, line[place - 1].end);
      }
      return left;
    }

    const sum = () => chain(["+", "-"], product);
    const product = () => chain(["*", "/"], signed);

    function signed() {
      const sign = { "+": "plus", "-": "minus" }[next()];
      if (!sign) return power();
      const { start } = line[place++];
      return node(sign, [signed()], start, line[place - 1].end);
    }

    function power() {
      const start = line[place]?.start;
      const base = call();
      if (next() !== "**") return base;
      place += 1;
      return node("**", [base, signed()], start, line[place - 1].end); // -x**2 is -(x**2)
    }

    function call() {
      const start = line[place]?.start;
      let called = atom();
      while (next() === "(") {
        place += 1;
        const inside = [];
        while (next() !== ")") {
          inside.push(sum());
          if (next() === ",") place += 1;
          else break;
        }
        close();
        called = node("call", [called, ...inside], start, line[place - 1].end);
      }
      return called;
    }

    function atom() {
      const token = line[place];
      if (!token) throw refused(`'${text}' is not an expression`, text);
      place += 1;
      if (token.kind !== "operator") return node(token.kind, [], token.start, token.end);
      if (token.text !== "(") throw refused(`'${text}' is not an expression`, text);
      const inner = sum();
      close();
      return inner;
    }

    function close() {
      if (next() !== ")") throw refused(`'${text}' is not an expression`, text);
      place += 1;
    }

    const whole = sum();
    if (place < line.length) throw refused(`'${text}' is not an expression`, text);
    return [whole, count];
  }

  // --- Nodes to trees: "x", a fraction, or [name, ...operands] ------------------------
  const hasX = (tree) => tree === "x" || (Array.isArray(tree) && tree.slice(1).some(hasX));

  function readNode(node, text) {
    const piece = text.slice(node.start, node.end);
    const notAllowed = () => refused(`${piece} is not allowed in an expression`, piece);
    const read = (operand) => readNode(operand, text);
    let tree;
    switch (node.name) {
      case "name":
        if (piece !== "x") throw notAllowed();
        return "x";
      case "number":
        // Two digits of exponent at most: 1e999999999 would exhaust the memory.
        if (/e[+-]?\d{3}/i.test(piece)) throw notAllowed();
        tree = decimal(piece);
        if (tree.n > BigInt(limits.number) * tree.d) {
          throw new Error(`numbers are at most ${limits.number}, got ${piece}`);
        }
        return tree;
      case "call": {
        const [called, ...inside] = node.operands;
        const name = text.slice(called.start, called.end);
        if (!FUNCTIONS.includes(name) || inside.length !== 1) throw notAllowed();
        tree = [name, read(inside[0])];
        break;
      }
      case "**":
        tree = ["**", read(node.operands[0]), readExponent(node.operands[1], text)];
        break;
      default:
        tree = [node.name, ...node.operands.map(read)];
    }
    if (!hasX(tree) && !Number.isFinite(jetOf(tree)(0)[0])) {
      throw new Error(`${piece} is not a finite real number`);
    }
    return folded(tree);
  }

  // Compute with numbers exactly, unless they become very long.
  function folded(tree) {
    const [name, ...operands] = tree;
    if (!operands.every(isFraction)) return tree;
    const [a, b] = operands;
    if (FUNCTIONS.includes(name)) return (a.d === 1n && SPECIAL[`${name} ${a.n}`]) || tree;
    if (name === "**") {
      if (b.d !== 1n) return tree;
      // Whatever is not 0 or 1 in size has more bits than may be kept.
      const plain = a.d === 1n && size(a.n) <= 1n;
      if (!plain && size(b.n) > limits.bits) return tree;
    }
    const exact = EXACT[name](a, b);
    const bits = (n) => (n ? size(n).toString(2).length : 0);
    return Math.max(bits(exact.n), bits(exact.d)) <= limits.bits ? exact : tree;
  }

  function readExponent(node, text) {
    const exact = (tree) => {
      if (isFraction(tree)) return tree;
      if (!Array.isArray(tree) || tree[0] === "**" || !(tree[0] in EXACT)) return null;
      const operands = tree.slice(1).map(exact);
      return operands.includes(null) ? null : EXACT[tree[0]](...operands);
    };
    const exponent = exact(readNode(node, text));
    if (exponent && exponent.d <= BigInt(limits.denominator)) return exponent;
    throw new Error(
      "an exponent is a number such as 2, -1, 0.5 or (1/3), with a denominator of " +
        `at most ${limits.denominator}, got ${text.slice(node.start, node.end)}`,
    );
  }

  // Largest product of exponents along a path down the tree, each at least 1.
  const larger = (a, b) => (a.n * b.d > b.n * a.d ? a : b);

  function largestPower(tree) {
    if (!Array.isArray(tree)) return fraction(1n);
    const powers = tree.slice(1).map(largestPower);
    if (tree[0] !== "**") return powers.reduce(larger);
    const { n, d } = tree[2];
    return EXACT["*"](powers[0], larger(fraction(1n), { n: size(n), d }));
  }

  // --- Trees to functions of x: jets [value, slope, curvature], as in formulas/jets.py ----
  // The chain rule; sqrt(0) is a constant too, although the root's slope is infinite.
  function chainRule([, s, c], value, slope, curvature) {
    return s === 0 && c === 0 ? [value, s, c] : [value, slope * s, curvature * s * s + slope * c];
  }

  const plus = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
  const minus = (a) => [-a[0], -a[1], -a[2]];
  const times = (a, b) => [
    a[0] * b[0],
    a[1] * b[0] + a[0] * b[1],
    a[2] * b[0] + 2 * (a[1] * b[1]) + a[0] * b[2],
  ];

  function toThe(a, n) {
    if (n === 1) return a; // the rule below would divide by 0 at 0
    const x = a[0];
    const value = x ** n;
    // Divisions are faster than powers, and as exact unless a power left the range.
    const safe = Math.abs(value) > 1e-150 && Math.abs(value) < 1e150 && Math.abs(x) < 1e150;
    const slope = safe ? value / x : x ** (n - 1);
    return chainRule(a, value, n * slope, n * (n - 1) * (safe ? slope / x : x ** (n - 2)));
  }

  const OF_JETS = {
    "+": plus,
    "-": (a, b) => plus(a, minus(b)),
    "*": times,
    "/": (a, b) => times(a, toThe(b, -1)),
    plus: (a) => a,
    minus,
    log: (a) => chainRule(a, Math.log(a[0]), 1 / a[0], -1 / a[0] ** 2),
    exp: (a) => {
      const value = Math.exp(a[0]);
      return chainRule(a, value, value, value);
    },
    sqrt: (a) => {
      const root = Math.sqrt(a[0]);
      return chainRule(a, root, 1 / (2 * root), -1 / (4 * root * a[0]));
    },
  };

  function jetOf(tree) {
    if (tree === "x") return (x) => [x, 1, 0];
    if (isFraction(tree)) {
      const value = toNumber(tree);
      return () => [value, 0, 0];
    }
    const [name, left, right] = tree;
    const first = jetOf(left);
    if (name === "**") {
      const n = toNumber(right);
      return (x) => toThe(first(x), n);
    }
    const operation = OF_JETS[name];
    if (right === undefined) return (x) => operation(first(x));
    const second = jetOf(right);
    return (x) => operation(first(x), second(x));
  }

  // --- Powers of x, combined: x**3/x is x**2, log(1/x) is -log(x) ---------------------
  // As [c, a] if a tree is c x^a with fractions c > 0 and a, for x > 0.
  function powerOf(tree) {
    if (tree === "x") return [fraction(1n), fraction(1n)];
    if (isFraction(tree)) return tree.n > 0n ? [tree, fraction(0n)] : null;
    const [name, left, right] = tree;
    if (name === "exp" && left[0] === "log") return powerOf(left[1]);
    const [a, b] = [powerOf(left), right && name !== "**" ? powerOf(right) : null];
    if (a && name === "plus") return a;
    if (a && b && (name === "*" || name === "/")) {
      return [EXACT[name](a[0], b[0]), EXACT[name === "*" ? "+" : "-"](a[1], b[1])];
    }
    const exponent = name === "**" ? right : name === "sqrt" ? fraction(1n, 2n) : null;
    if (!a || !exponent) return null;
    const one = a[0].n === a[0].d;
    if (!one && (exponent.d !== 1n || size(exponent.n) > BigInt(limits.power))) return null;
    return [one ? a[0] : EXACT["**"](a[0], exponent), EXACT["*"](a[1], exponent)];
  }

  function combined(tree) {
    const power = Array.isArray(tree) && hasX(tree) && powerOf(tree);
    if (power) {
      const [c, a] = power;
      const alone = a.n === a.d ? "x" : ["**", "x", a];
      return a.n === 0n ? c : c.n === c.d ? alone : ["*", c, alone];
    }
    if (!Array.isArray(tree)) return tree;
    const [name, ...operands] = tree;
    const inside = name === "log" && hasX(tree) && powerOf(operands[0]);
    if (inside) {
      const [c, a] = inside;
      const log = ["*", a, ["log", "x"]];
      return c.n === c.d ? log : ["+", ["log", c], log];
    }
    return [name, ...operands.map(combined)];
  }

  // --- Limits at 0 of what is NaN there, as x*log(x) is -------------------------------
  // Of values at 1e-16, 1e-32, 1e-64 and 1e-128, as in formulas/accurate.py.
  function limitOf([, first, second, last]) {
    const [before, after] = [second - first, last - second];
    if (Math.abs(after) <= 1e-12 * Math.abs(last)) return last;
    const ratio = before === 0 ? Infinity : after / before;
    if (Math.abs(ratio) > 0.75) return Math.sign(after) * Infinity; // a logarithm's doubles
    const limit = last + (after * ratio) / (1 - ratio); // 1/log(x) halves
    return Math.abs(limit) > 1e-6 * Math.abs(after) ? limit : 0;
  }

  function withLimit(jet) {
    const there = jet(0);
    const near = [1e-16, 1e-32, 1e-64, 1e-128].map(jet);
    const atZero = there.map((part, n) => (Number.isNaN(part) ? limitOf(near.map((found) => found[n])) : part));
    return (x) => (x === 0 ? atZero : jet(x));
  }

  // A formula, or the name of one such as LL; throws an Error with one line.
  function read(given) {
    let text = Object.hasOwn(names, given.trim()) ? names[given.trim()] : given;
    if (text.length > limits.characters) {
      throw new Error(`an expression has at most ${limits.characters} characters, got ${text.length}`);
    }
    if (!/^[ -~]*$/.test(text) || text.includes("#")) {
      throw refused(`a character of '${text}' is not allowed`, text);
    }
    text = text.trim();
    const [node, count] = parse(text);
    if (count > limits.nodes) throw new Error(`an expression has at most ${limits.nodes} terms, got ${count}`);
    const tree = readNode(node, text);
    const { n, d } = largestPower(tree);
    if (n > BigInt(limits.power) * d) {
      const got = d === 1n ? n : `${n}/${d}`;
      throw new Error(
        `powers are at most ${limits.power}, multiplied where they are nested, got ${got} in ${text}`,
      );
    }
    return { text, jet: withLimit(jetOf(combined(tree))) };
  }

  return { read };
})();
