// Formulas in one variable, read as qdtheory/formulas/expressions.py reads them: the same
// grammar, limits and messages, which the tests compare. Nothing is ever executed: the
// text becomes a tree, the tree a function of x.
//
//   const g = Formulas.read("-x*log(x)");  // or an Error whose message is one line
//   g.jet(0.5)                             // [value, slope, curvature]
"use strict";

const Formulas = (() => {
  // What is read, and what is said of the rest, comes from Python: explorer_data.py.
  const { allowed, functions, limits, names, spellings } = EXPLORER.formulas;
  const WORDS = new Map(
    spellings.words.flatMap(([kind, plain, ...others]) =>
      ["", ...spellings.prefixes].flatMap((prefix) =>
        [plain, ...others].map((word) => [prefix + word, [kind, plain]]),
      ),
    ),
  );
  for (const letter of spellings.letters) WORDS.set(letter, ["x", "x"]);
  const RULES = spellings.rules.map(([pattern, ...rule]) => [
    new RegExp(pattern.replaceAll("A", spellings.factors), "d"),
    ...rule,
  ]);
  const BRACKETS = new RegExp(spellings.brackets);
  const NUMBER = new RegExp(`^(?:${spellings.number})$`);

  function refused(why, text = "") {
    for (const [at, hint] of spellings.hints) {
      const found = new RegExp(at).exec(`${why}\n${text}`);
      if (found) return new Error(`${why}; ${hint.replace(/\\(\d)/g, (_, n) => found[n])}`);
    }
    return new Error(`${why}; ${allowed}`);
  }
  const printable = (text) =>
    text.replace(/[^ -~]/gu, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

  // --- How people write, plainly: the words of a text, and the rules of the table ------
  function plainText(text) {
    let { kinds, words } = wordsOf(text);
    for (let found; (found = BRACKETS.exec(kinds)); ) {
      const [i, j] = [found.index, found.index + found[0].length];
      const inside = reduced(kinds.slice(i + 1, j - 1), words.slice(i + 1, j - 1), text);
      words.splice(i, j - i, `${kinds[i] === "|" ? "abs" : ""}(${inside})`);
      const start = kinds.slice(0, i + 1);
      const [, group] = spellings.groups.find(([end]) => start.endsWith(end));
      kinds = start.slice(0, -1) + group + kinds.slice(j);
    }
    return reduced(kinds, words, text);
  }

  function wordsOf(text) {
    const raised = [...spellings.raised];
    const lowered = text
      .replace(new RegExp(`[${spellings.raised}]+`, "g"), "^{$&}")
      .replace(new RegExp(`[${spellings.raised}]`, "g"), (c) => "0123456789-"[raised.indexOf(c)]);
    const said = lowered.match(new RegExp(spellings.word, "gu")) ?? [];
    const known = (word) => WORDS.get(word) ?? (NUMBER.test(word) ? ["n", word] : null);
    const unknown = said.find((word) => !known(word));
    if (unknown) throw refused(`${printable(unknown)} is not allowed in an expression`, lowered);
    const variables = [...new Set(said.filter((word) => known(word)[0] === "x"))];
    if (new Set(variables.map((word) => word.toLowerCase())).size > 1) {
      throw refused(`${variables.join(" and ")} are not one variable`);
    }
    const found = said.map(known).filter(([kind]) => kind !== "_");
    return { kinds: found.map(([kind]) => kind).join(""), words: found.map(([, plain]) => plain) };
  }

  function reduced(kinds, words, text) {
    for (const [at, kind, ...said] of RULES) {
      for (let found; (found = at.exec(kinds)); ) {
        const parts = found.indices.map(([i, j]) => words.slice(i, j).join(""));
        const written = said.map((line) =>
          tidy(line.replace(/\$(\d)(<?)/g, (_, n, less) => (less ? parts[n].slice(0, -1) : parts[n]))),
        );
        if (!kind) throw new Error(`'${printable(text)}' is ambiguous; write ${written.join(" or ")}`);
        const [i, j] = found.indices[0];
        kinds = kinds.slice(0, i) + kind + kinds.slice(j);
        words.splice(i, j - i, ...written);
      }
    }
    return tidy(words.join(""));
  }

  const tidy = (plain) => plain.replace(/(?<!\w)\((\w+)\)|\((\([^()]*\))\)/g, "$1$2");

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
    minus: (a) => fraction(-a.n, a.d),
    abs: (a) => fraction(size(a.n), a.d),
  };
  const SPECIAL = { "sqrt 0": fraction(0n), "sqrt 1": fraction(1n), "log 1": fraction(0n), "exp 0": fraction(1n) };

  // --- Plain text to nodes {name, operands, start, end} ------------------------------
  const TOKENS = /(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*)|(?<operator>\*\*|[-+*/()])/y;

  function tokens(text) {
    const found = [];
    for (let start = 0; start < text.length; ) {
      if (text[start] === " ") {
        start += 1;
        continue;
      }
      TOKENS.lastIndex = start;
      const match = TOKENS.exec(text);
      if (!match) throw new SyntaxError();
      const [kind] = Object.entries(match.groups).find(([, part]) => part !== undefined);
      const end = start + match[0].length;
      // As in Python: no number runs into a letter or a point, and 007 is no number.
      const broken = /[\w.]/.test(text[end] ?? "") || /^0+[1-9]\d*$/.test(match[0]);
      if (kind === "number" && broken) throw new SyntaxError();
      found.push({ kind, text: match[0], start, end });
      start = end;
    }
    return found;
  }

  // Recursive descent: a sum of products of signed powers of atoms.
  function parse(text) {
    const line = tokens(text);
    let place = 0;
    const next = () => line[place]?.text;

    const node = (name, operands, start, end) => ({ name, operands, start, end });

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
      const token = line[place++];
      if (!token) throw new SyntaxError();
      if (token.text === "(") return group();
      if (token.kind === "operator") throw new SyntaxError();
      if (next() !== "(") return node(token.kind, [], token.start, token.end);
      place += 1;
      return node("call", [token.text, group()], token.start, line[place - 1].end);
    }

    function group() {
      const inside = sum();
      if (next() !== ")") throw new SyntaxError();
      place += 1;
      return inside;
    }

    const whole = sum();
    if (place < line.length) throw new SyntaxError();
    return whole;
  }

  // --- Nodes to trees: "x", a fraction, or [name, ...operands] ------------------------
  const SIZES = new WeakMap(); // of trees written out; they may share parts
  const CONSTANT = new WeakSet();
  const sizeOf = (tree) => SIZES.get(tree) ?? 1;
  const hasX = (tree) => tree === "x" || (Array.isArray(tree) && !CONSTANT.has(tree));

  function built(tree) {
    const operands = tree.slice(1);
    const size = operands.reduce((sum, operand) => sum + sizeOf(operand), 1);
    SIZES.set(tree, tree[0] === "abs" ? 3 * size + 1 : size); // where(a < 0, -a, a)
    if (!operands.some(hasX)) CONSTANT.add(tree);
    return tree;
  }

  function readNode(node, text) {
    const piece = text.slice(node.start, node.end);
    const read = (operand) => readNode(operand, text);
    let tree;
    switch (node.name) {
      case "name":
        if (piece !== "x") throw new SyntaxError();
        return "x";
      case "number":
        tree = decimal(piece);
        if (tree.n > BigInt(limits.number) * tree.d) {
          throw new Error(`numbers are at most ${limits.number}, got ${piece}`);
        }
        return tree;
      case "call": {
        const [name, argument] = node.operands;
        const formula = Object.hasOwn(spellings.functions, name) && spellings.functions[name];
        if (formula) tree = withX(treeOf(formula), read(argument));
        else if (functions.includes(name) || name === "abs") tree = folded([name, read(argument)]);
        else throw new SyntaxError();
        break;
      }
      case "plus":
        tree = read(node.operands[0]);
        break;
      case "**":
        tree = raised(...node.operands.map(read), piece, text.slice(node.operands[1].start, node.operands[1].end));
        break;
      default:
        tree = folded([node.name, ...node.operands.map(read)]);
    }
    if (sizeOf(tree) > limits.nodes) throw new Error(`an expression has at most ${limits.nodes} terms`);
    return finite(tree, piece);
  }

  function finite(tree, piece) {
    if (hasX(tree) || Number.isFinite(jetOf(tree)(0)[0])) return tree;
    throw new Error(`${piece} is not a finite real number`);
  }

  // A power; 2**x is exp(x*log(2)).
  function raised(base, exponent, piece, end) {
    if (hasX(exponent) && !hasX(base)) {
      return folded(["exp", folded(["*", exponent, finite(folded(["log", base]), piece)])]);
    }
    if (isFraction(exponent) && exponent.d <= BigInt(limits.denominator)) return folded(["**", base, exponent]);
    throw new Error(
      "an exponent is a number such as 2, -1, 0.5 or (1/3), with a denominator of " +
        `at most ${limits.denominator}, got ${end}`,
    );
  }

  // A tree with another one for x.
  function withX(tree, x) {
    if (!Array.isArray(tree)) return tree === "x" ? x : tree;
    return folded([tree[0], ...tree.slice(1).map((operand) => withX(operand, x))]);
  }

  // Compute with numbers exactly, unless they become very long.
  function folded(tree) {
    const [name, a, b] = tree;
    const is = (part, n) => part && isFraction(part) && part.d === 1n && part.n === n;
    if (name === "+" && is(a, 0n)) return b;
    if ((name === "+" || name === "-") && is(b, 0n)) return a;
    if (name === "*" && is(a, 1n)) return b;
    if ((name === "*" || name === "/") && is(b, 1n)) return a;
    if (![a, b ?? a].every(isFraction)) return built(tree);
    if (functions.includes(name)) return (a.d === 1n && SPECIAL[`${name} ${a.n}`]) || built(tree);
    if (name === "**") {
      if (b.d !== 1n) return built(tree);
      // Whatever is not 0 or 1 in size has more bits than may be kept.
      const plain = a.d === 1n && size(a.n) <= 1n;
      if (!plain && size(b.n) > limits.bits) return built(tree);
    }
    if ((name === "/" && b.n === 0n) || (name === "**" && a.n === 0n && b.n < 0n)) return built(tree);
    const exact = EXACT[name](a, b);
    const bits = (n) => (n ? size(n).toString(2).length : 0);
    return Math.max(bits(exact.n), bits(exact.d)) <= limits.bits ? exact : built(tree);
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
    minus,
    // At a zero as within (0, 1): |log(x)| falls to 0 at 1.
    abs: (a, x) => ((a[0] || (x < 1 ? a[1] : -a[1])) < 0 ? minus(a) : a),
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
    if (right === undefined) return (x) => operation(first(x), x);
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
    if (a && name === "abs") return a;
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

  // Plain or not, as a tree.
  function treeOf(text) {
    try {
      const plain = plainText(text);
      const tree = readNode(parse(plain), plain);
      const { n, d } = largestPower(tree);
      if (n <= BigInt(limits.power) * d) return tree;
      throw new Error(
        `powers are at most ${limits.power}, multiplied where they are nested, ` +
          `got ${d === 1n ? n : `${n}/${d}`} in ${plain}`,
      );
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw refused(`'${printable(text)}' is not an expression`);
    }
  }

  // A formula, or the name of one such as LL; throws an Error with one line.
  function read(given) {
    let text = Object.hasOwn(names, given.trim()) ? names[given.trim()] : given;
    const long = [...text].length;
    if (long > limits.characters) {
      throw new Error(`an expression has at most ${limits.characters} characters, got ${long}`);
    }
    text = text.replace(/^ +| +$/g, "");
    if (spellings.quotes.includes(text.slice(0, 1) + text.slice(1).slice(-1))) text = text.slice(1, -1);
    const tree = treeOf(text);
    return { text, tree, jet: withLimit(jetOf(combined(tree))) };
  }

  return { read };
})();
