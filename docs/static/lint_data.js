const LINT = {
 "separators": [
  "|",
  "\t",
  "&",
  ";",
  ","
 ],
 "rule_lines": "^[\\s|:+=-]*$|^\\s*\\\\\\w+(\\{[^}]*\\})?\\s*$|^\\s*\\\\(begin|end|\\w*rule|[ch]line)\\b[^&]*$",
 "typography": "\\\\(?!pm)[a-zA-Z]+|\\\\\\\\|[$\"*_{}†‡~]|</?\\w+>",
 "remarks": "\\(.*?\\)|\\[.*?\\]|↑|↓|arrow",
 "missing": "^(-*|–|—|n/?a|nan|none)$",
 "entry": "^([<>]?)\\s*([+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:e[+-]?\\d+)?)\\s*%?(?:\\s*(?:±|\\\\pm|\\+-|\\+/-|\\()\\s*(\\d*\\.?\\d+(?:e[+-]?\\d+)?)\\s*%?\\)?)?$",
 "deviation": "(deviation|standarddeviation|stddev|std|sd)$",
 "shares": [
  "BLEU",
  "Self-BLEU",
  "MS-Jaccard",
  "Distinct",
  "ROUGE",
  "METEOR",
  "chrF",
  "MAUVE",
  "coverage",
  "NRR",
  "CND",
  "precision",
  "recall",
  "F1",
  "share",
  "exact-match",
  "novelty",
  "uniqueness",
  "DRate"
 ],
 "sizes": [
  "vocabulary",
  "texts",
  "length",
  "tokens",
  "references",
  "items"
 ],
 "errors": {
  "given": "given: expected sizes of the table, whole numbers such as length=20, out of {known}; got {got}",
  "unknown": "no column is known, such as BLEU-2, distinct-2 or NLL",
  "twice": "{got} are one metric; leave one of them",
  "table": "no table; expected a head and rows of as many cells, as CSV, TSV, Markdown or LaTeX; a cell without a number stays empty",
  "entry": "{row}, {title}: expected a number, got {got}"
 },
 "names": {
  "BLEU": "bleu bl bleun",
  "Self-BLEU": "selfbleu sbleu sbl sb",
  "MS-Jaccard": "msjaccard msj",
  "Distinct": "distinct dist",
  "ROUGE": "rouge rougel",
  "METEOR": "meteor",
  "chrF": "chrf",
  "MAUVE": "mauve",
  "coverage": "cr coverage coveragerate",
  "NRR": "nrr negativerepetitionrate",
  "CND": "cnd",
  "precision": "precision prec",
  "recall": "recall rec",
  "F1": "f1 f f1score fscore fmeasure",
  "share": "share accuracy acc",
  "exact-match": "exactmatch em",
  "novelty": "novelty novel",
  "uniqueness": "unique uniqueness",
  "DRate": "drate",
  "QDisc": "qdisc",
  "JSD": "jsd js jensenshannon jensenshannondivergence",
  "TV": "tv tvd totalvariation",
  "KL": "kl",
  "Frechet": "fd fbd fid frechet frechetdistance",
  "NLL": "nll nlltest testnll forwardnll forwardcrossentropy",
  "token-NLL": "tokennll nllpertoken nlltoken",
  "Oracle-NLL": "oraclenll nlloracle reversenll reversecrossentropy",
  "entropy": "entropy se modelentropy hq",
  "real-entropy": "realentropy oracleentropy hp",
  "n-gram-entropy": "gramentropy ngramentropy entropyn",
  "perplexity": "perplexity ppl",
  "rating": "rating human humanevaluation",
  "fluency": "fluency readability",
  "adequacy": "adequacy relevance",
  "vocabulary": "vocabulary vocabsize",
  "texts": "texts samples sentences",
  "length": "length minlength shortest",
  "tokens": "tokens",
  "references": "references refs",
  "items": "items"
 },
 "rules": [
  {
   "each": [
    "BLEU",
    "Self-BLEU",
    "MS-Jaccard",
    "Distinct",
    "ROUGE",
    "METEOR",
    "chrF",
    "MAUVE",
    "coverage",
    "precision",
    "recall",
    "F1",
    "share",
    "exact-match",
    "novelty",
    "uniqueness",
    "DRate"
   ],
   "columns": [
    "X-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "1",
   "says": "{a} <= 1",
   "unless": "it is in another unit, or a count",
   "shown": "range"
  },
  {
   "each": [
    "BLEU",
    "Self-BLEU",
    "MS-Jaccard",
    "Distinct",
    "ROUGE",
    "METEOR",
    "chrF",
    "MAUVE",
    "coverage",
    "precision",
    "recall",
    "F1",
    "share",
    "exact-match",
    "novelty",
    "uniqueness",
    "DRate",
    "QDisc",
    "TV",
    "Frechet",
    "NLL",
    "token-NLL",
    "Oracle-NLL",
    "entropy",
    "real-entropy",
    "n-gram-entropy"
   ],
   "columns": [
    "X-k"
   ],
   "when": "1",
   "low": "0",
   "high": "a.hi",
   "says": "0 <= {a}",
   "unless": "",
   "shown": "range"
  },
  {
   "each": [
    "JSD",
    "TV"
   ],
   "columns": [
    "X-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "1",
   "says": "{a} <= 1",
   "unless": "",
   "shown": "range"
  },
  {
   "columns": [
    "NRR-k"
   ],
   "when": "1",
   "low": "max(a.lo, -1 - a.hi)",
   "high": "0",
   "says": "-1 <= {a} <= 0",
   "unless": "",
   "shown": "range"
  },
  {
   "columns": [
    "CND-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "2",
   "says": "{a} <= 2",
   "unless": "",
   "shown": "range"
  },
  {
   "columns": [
    "perplexity-k"
   ],
   "when": "1",
   "low": "1",
   "high": "a.hi",
   "says": "1 <= {a}",
   "unless": "",
   "shown": "range"
  },
  {
   "each": [
    "BLEU",
    "Self-BLEU",
    "MS-Jaccard"
   ],
   "columns": [
    "X-m",
    "X-n"
   ],
   "when": "0 < m and m < n",
   "low": "b.lo",
   "high": "a.hi**(m/n)",
   "says": "{b} <= {a}^({m}/{n})",
   "unless": "",
   "shown": "N13.25"
  },
  {
   "columns": [
    "BLEU-m",
    "BLEU-n",
    "length-s",
    "references-s"
   ],
   "when": "0 < m and m < n and d.hi == 1 and c.hi >= n",
   "low": "b.lo",
   "high": "a.hi*(c.hi/(c.hi - n + 1))**((n - m)/n)",
   "says": "{b} <= {a} (L/(L - {n} + 1))^(({n} - {m})/{n}) of one reference, L the length",
   "unless": "counts are smoothed by adding 1",
   "shown": "N13.26"
  },
  {
   "each": [
    "BLEU",
    "Self-BLEU"
   ],
   "columns": [
    "X-m",
    "X-n"
   ],
   "when": "0 < m and m < n and b.lo <= a.hi**(m/n)",
   "low": "b.lo",
   "high": "a.hi",
   "says": "{b} <= {a}",
   "unless": "a text repeats an n-gram more often than a reference has it, counts are smoothed, or texts of several lengths are pooled",
   "shown": "N13.27"
  },
  {
   "columns": [
    "MS-Jaccard-m",
    "MS-Jaccard-n",
    "length-s"
   ],
   "when": "0 < m and m < n and c.hi > 2*n - 2",
   "low": "b.lo",
   "high": "a.hi*(c.hi/(c.hi - 2*n + 2))**((n - m)/n)",
   "says": "{b} <= {a} (L/(L - 2*{n} + 2))^(({n} - {m})/{n}), L the length",
   "unless": "",
   "shown": "N13.26"
  },
  {
   "columns": [
    "MS-Jaccard-m",
    "MS-Jaccard-n"
   ],
   "when": "0 < m and m < n and b.lo <= a.hi**(m/n)",
   "low": "b.lo",
   "high": "a.hi",
   "says": "{b} <= {a}",
   "unless": "texts are so short that a factor (L/(L - 2*{n} + 2))^(({n} - {m})/{n}) explains it, L the length of the shortest",
   "shown": "N13.26"
  },
  {
   "columns": [
    "Distinct-m",
    "Distinct-n",
    "length-s"
   ],
   "when": "0 < m and m < n and c.hi >= n",
   "low": "a.lo*(c.hi - n + 1)/(c.hi - m + 1)",
   "high": "b.hi",
   "says": "{a} (L - {n} + 1)/(L - {m} + 1) <= {b}, L the length",
   "unless": "",
   "shown": "N13.28"
  },
  {
   "columns": [
    "Distinct-m",
    "Distinct-n"
   ],
   "when": "0 < m and m < n",
   "low": "a.lo",
   "high": "b.hi",
   "says": "{a} <= {b}",
   "unless": "texts of several lengths are counted together, or all orders are divided by the number of tokens",
   "shown": "N13.28"
  },
  {
   "columns": [
    "Self-BLEU-n",
    "vocabulary-s",
    "texts-s"
   ],
   "when": "n > 0",
   "low": "1 - n*b.hi**n/c.hi",
   "high": "a.hi",
   "says": "1 - {n}*V^{n}/N <= {a} of N texts over V words",
   "unless": "texts differ in length, have fewer than {n} tokens, or are scored against some of the others only",
   "shown": "N13.29"
  },
  {
   "columns": [
    "Distinct-n",
    "vocabulary-s",
    "texts-s",
    "tokens-s"
   ],
   "when": "n > 0 and d.hi >= n*c.hi",
   "low": "a.lo",
   "high": "b.hi**n/(d.hi - (n - 1)*c.hi)",
   "says": "{a} <= V^{n}/(T - ({n} - 1)*N), of N texts and T tokens over V words",
   "unless": "it is a mean over texts",
   "shown": "counting"
  },
  {
   "columns": [
    "Distinct-n",
    "tokens-s"
   ],
   "when": "n > 0",
   "low": "1/b.hi",
   "high": "a.hi",
   "says": "1/T <= {a} of T tokens",
   "unless": "",
   "shown": "counting"
  },
  {
   "each": [
    "share",
    "exact-match",
    "novelty",
    "uniqueness",
    "rating",
    "fluency",
    "adequacy"
   ],
   "columns": [
    "X-k",
    "items-s"
   ],
   "when": "1",
   "low": "ceil(a.lo*b.hi - 1e-9)/b.hi",
   "high": "a.hi",
   "says": "{a} is a whole number over {b}",
   "unless": "an item may count in part",
   "shown": "counting (GRIM)"
  },
  {
   "columns": [
    "n-gram-entropy-n",
    "vocabulary-s"
   ],
   "when": "n > 0",
   "low": "a.lo",
   "high": "n*log(b.hi)",
   "says": "{a} <= {n} log V nats over V words",
   "unless": "it is in bits",
   "shown": "Gibbs"
  },
  {
   "columns": [
    "entropy-k",
    "Oracle-NLL-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "b.hi",
   "says": "{a} <= {b}",
   "unless": "one is an estimate, or they are counted in different units",
   "shown": "Gibbs"
  },
  {
   "columns": [
    "real-entropy-k",
    "NLL-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "b.hi",
   "says": "{a} <= {b}",
   "unless": "one is an estimate, or they are counted in different units",
   "shown": "Gibbs"
  },
  {
   "columns": [
    "Oracle-NLL-k",
    "entropy-k",
    "KL-k"
   ],
   "when": "1",
   "low": "c.lo",
   "high": "a.hi - b.lo",
   "says": "{c} <= {a} - {b}",
   "unless": "they are separate estimates, or {c} is that of the real distribution from the model",
   "shown": "N13.15"
  },
  {
   "columns": [
    "Oracle-NLL-k",
    "entropy-k",
    "KL-k"
   ],
   "when": "1",
   "low": "a.lo - b.hi",
   "high": "c.hi",
   "says": "{a} - {b} <= {c}",
   "unless": "they are separate estimates, or {c} is that of the real distribution from the model",
   "shown": "N13.15"
  },
  {
   "columns": [
    "KL-k"
   ],
   "when": "1",
   "low": "0",
   "high": "a.hi",
   "says": "0 <= {a}",
   "unless": "it is an estimate",
   "shown": "Gibbs"
  },
  {
   "columns": [
    "TV-k",
    "KL-k"
   ],
   "when": "1",
   "low": "2*a.lo**2",
   "high": "b.hi",
   "says": "2 {a}^2 <= {b}",
   "unless": "one is an estimate",
   "shown": "N9.4"
  },
  {
   "columns": [
    "JSD-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "log(2)",
   "says": "{a} <= log 2 nats",
   "unless": "it is in bits, or the square root",
   "shown": "Lin 1991"
  },
  {
   "columns": [
    "coverage-k",
    "NRR-k",
    "CND-k"
   ],
   "when": "1",
   "rows": 2,
   "low": "2*a.lo + b.lo + c.lo",
   "high": "2*d.hi + e.hi + f.hi",
   "says": "2 {a} + {b} + {c} is the same in all rows",
   "unless": "the rows have different references, or the three are separate estimates",
   "shown": "N2.9"
  },
  {
   "columns": [
    "NLL-k",
    "perplexity-k"
   ],
   "when": "a.lo > 0 and c.lo > 0 and b.lo >= 1 and d.lo >= 1",
   "rows": 2,
   "low": "log(b.lo)/a.hi",
   "high": "log(d.hi)/c.lo",
   "says": "log {b} over {a} is the same in all rows",
   "unless": "the rows are about different texts, or {b} is a mean over texts",
   "shown": "definition"
  },
  {
   "columns": [
    "token-NLL-k",
    "perplexity-k"
   ],
   "when": "1",
   "low": "min(max(exp(a.lo) - b.hi, b.lo - exp(a.hi)), max(2**a.lo - b.hi, b.lo - 2**a.hi))",
   "high": "0",
   "says": "{b} is exp {a}, or 2^{a}",
   "unless": "they are about different texts, or {b} is a mean over texts",
   "shown": "definition"
  },
  {
   "columns": [
    "precision-k",
    "recall-k",
    "F1-k"
   ],
   "when": "a.hi + b.hi > 0",
   "low": "c.lo",
   "high": "2*a.hi*b.hi/(a.hi + b.hi)",
   "says": "{c} <= 2 {a} {b}/({a} + {b})",
   "unless": "",
   "shown": "Jensen"
  },
  {
   "columns": [
    "precision-k",
    "recall-k",
    "F1-k"
   ],
   "when": "a.lo + b.lo > 0",
   "low": "2*a.lo*b.lo/(a.lo + b.lo)",
   "high": "c.hi",
   "says": "2 {a} {b}/({a} + {b}) <= {c}",
   "unless": "{c} is a mean over items or classes",
   "shown": "definition"
  },
  {
   "each": [
    "BLEU",
    "Self-BLEU",
    "MS-Jaccard",
    "Distinct",
    "ROUGE",
    "METEOR",
    "chrF",
    "MAUVE",
    "coverage",
    "precision",
    "recall",
    "F1",
    "share",
    "exact-match",
    "novelty",
    "uniqueness"
   ],
   "columns": [
    "X-k",
    "X-deviation-k"
   ],
   "when": "0 <= a.hi and a.lo <= 1",
   "low": "b.lo",
   "high": "sqrt(2*a.hi*(1 - a.lo))",
   "says": "{b} <= sqrt(2 {a} (1 - {a}))",
   "unless": "it is no standard deviation",
   "shown": "Bhatia and Davis 2000"
  },
  {
   "columns": [
    "QDisc-k",
    "DRate-k"
   ],
   "when": "1",
   "low": "a.lo",
   "high": "b.hi",
   "says": "{a} <= {b} if quality is in [0, 1]",
   "unless": "quality has another range",
   "shown": "definition"
  }
 ]
};
