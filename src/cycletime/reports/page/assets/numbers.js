// Exact fractions, durations and formulas: what the calculator counts with. Fractions are {n, d} of BigInt, so that a
// half is rounded as Python rounds it; whatever has a root, a power or a logarithm in it is a plain number.
(() => {
  const app = (globalThis.cycletime ??= {});

  const isExact = (value) => typeof value === "object";
  const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; };
  function fraction(n, d = 1n) {
    if (d < 0n) [n, d] = [-n, -d];
    const common = gcd(n, d) || 1n;
    return { n: n / common, d: d / common };
  }
  const number = (value) => (isExact(value) ? Number(value.n) / Number(value.d) : value);
  const times = (a, b) => fraction(a.n * b.n, a.d * b.d);
  const over = (a, b) => fraction(a.n * b.d, a.d * b.n);

  /** Of a decimal such as '12.5e-3' or '1/60', its exact fraction; null where it is none. */
  function exactOf(text) {
    const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,2}))?(?:\/(\d+))?$/.exec(text);
    if (!match || !(match[2] || match[3]) || text.length > 60) return null;
    const [, sign, whole, part = "", exponent = "0", divisor = "1"] = match;
    if (/^0*$/.test(divisor) || (match[5] && (match[3] !== undefined || match[4]))) return null;
    const shift = Number(exponent) - part.length;
    const digits = BigInt(whole + part) * (sign === "-" ? -1n : 1n);
    const power = 10n ** BigInt(Math.abs(shift));
    return shift < 0 ? fraction(digits, power * BigInt(divisor)) : fraction(digits * power, BigInt(divisor));
  }
  const fromNumber = (value) => exactOf(String(value).replace("e+", "e"));

  /** The exact value of a double. */
  function fromDouble(value) {
    let d = 1n;
    while (!Number.isInteger(value)) { value *= 2; d *= 2n; }
    return fraction(BigInt(value), d);
  }

  /** The nearest whole number, halves down; a BigInt. */
  function nearestWhole(value, atLeast = 1n) {
    const { n, d } = isExact(value) ? value : fromDouble(value);
    const top = 2n * n - d, bottom = 2n * d;
    let up = top / bottom;
    if (top > 0n && top % bottom) up += 1n;
    return up < atLeast ? atLeast : up;
  }

  /** Python's Fraction.limit_denominator. */
  function limitDenominator(value, most) {
    if (value.d <= most) return value;
    let [p0, q0, p1, q1] = [0n, 1n, 1n, 0n];
    let { n, d } = value;
    for (;;) {
      const a = n / d, q2 = q0 + a * q1;
      if (q2 > most) break;
      [p0, q0, p1, q1] = [p1, q1, p0 + a * p1, q2];
      [n, d] = [d, n - a * d];
    }
    const k = (most - q0) / q1;
    const away = (each) => Math.abs(number(each) - number(value));
    const one = fraction(p0 + k * p1, q0 + k * q1), other = fraction(p1, q1);
    return away(other) <= away(one) ? other : one;
  }

  // Numbers as Python writes them. Exact halves go to the even digit there, and to the larger one in JavaScript.
  function evenAtTies(text, value, finer) {
    if (Number(finer) !== value || finer.split("e")[0].at(-1) !== "5") return text;
    const [half, double] = [exactOf(finer.replace("e+", "e")), fromDouble(value)];
    if (half?.n !== double.n || half?.d !== double.d) return text;
    const [digits, exponent] = text.split("e"), last = Number(digits.at(-1));
    if (last % 2 === 0) return text;
    // What was rounded up came from an even digit; a carry has left a 0, which is even.
    return digits.slice(0, -1) + String(last - 1) + (exponent === undefined ? "" : `e${exponent}`);
  }
  const fixed = (value, places) => {
    const text = evenAtTies(Math.abs(value).toFixed(places), Math.abs(value), Math.abs(value).toFixed(places + 1));
    return (value < 0 ? "-" : "") + text;
  };
  /** As Python's format with '.6g'. */
  function general(value, digits = 6) {
    if (!Number.isFinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
    if (value === 0) return "0";
    const size = Math.abs(value);
    const rounded = evenAtTies(size.toExponential(digits - 1), size, size.toExponential(digits));
    const [mantissa, power] = rounded.split("e");
    const exponent = Number(power), sign = value < 0 ? "-" : "";
    const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (exponent < -4 || exponent >= digits) {
      return `${sign}${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
    }
    return sign + bare(Number(rounded).toFixed(Math.max(0, digits - 1 - exponent)));
  }
  /** As Python's repr of a float. */
  function repr(value) {
    if (Number.isInteger(value) && Math.abs(value) < 1e16) return `${Object.is(value, -0) ? "-0" : value}.0`;
    const size = Math.abs(value);
    if (size >= 1e16 || size < 1e-4) {
      return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
    }
    return String(value);
  }
  const percent = (share) => `${share < 0 ? "" : "+"}${fixed(100 * share, 1)}%`;

  const UNITS = { s: [1n, 1n], ms: [1n, 1000n], us: [1n, 10n ** 6n], ns: [1n, 10n ** 9n], min: [60n, 1n], h: [3600n, 1n] };
  const EXAMPLES = "a positive time such as '16ms', '0.016s' or '62.5Hz'";

  /** Seconds from text, as an exact fraction; a bare number is in seconds. */
  function duration(text) {
    const match = /^([+-]?[0-9.]+(?:e[+-]?[0-9]+)?(?:\/[0-9]+)?) ?([a-z]*)$/.exec(
      text.trim().toLowerCase().replace(/[µμ]/g, "u"));
    const amount = match && exactOf(match[1]);
    let exact = null;
    if (amount && amount.n > 0n) {
      const unit = match[2] || "s";
      if (unit === "hz" || unit === "khz") exact = over(fraction(1n), times(amount, fraction(unit === "hz" ? 1n : 1000n)));
      else if (unit in UNITS) exact = times(amount, fraction(...UNITS[unit]));
    }
    if (!exact || number(exact) < 0.99e-12 || number(exact) > 1.01e12) throw new Error(`'${text}' is not a time span: give ${EXAMPLES}.`);
    if (!match[2] && exact.n >= exact.d) {
      throw new Error(`'${text}' has no unit: write '${text.trim()}ms' for milliseconds, '${text.trim()}s' for seconds or '${text.trim()}Hz'.`);
    }
    return exact;
  }

  function exactDecimal({ n, d }) {
    for (let places = 0; places <= 18; places += 1) {
      const power = 10n ** BigInt(places);
      if (power % d === 0n) {
        const digits = String(n * (power / d)).padStart(places + 1, "0");
        return places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits;
      }
    }
    return null;
  }
  /** As Python's str of a Duration: '100ms' below a second, '1.5s' from one on, or '60Hz'. */
  function spanText(exact) {
    const forms = ["s", "ms", "us", "ns"]
      .map((unit) => [exactDecimal(over(exact, fraction(...UNITS[unit]))), unit])
      .filter(([digits]) => digits);
    const reached = forms.find(([digits]) => !digits.startsWith("0")) ?? forms.at(-1);
    if (reached) return reached.join("");
    const hertz = exactDecimal(over(fraction(1n), exact));
    return hertz ? `${hertz}Hz` : `${exact.n}/${exact.d}s`;
  }

  const FUNCTIONS = { ln: Math.log, sqrt: Math.sqrt, min: Math.min, max: Math.max, round: (x) => Math.ceil(x - 0.5) }; // halves down
  const TOKEN = /\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?(?![a-z])|[a-z_]+[0-9]*|[-+*/^(),])/gy;

  /** The value of a formula such as 'min(x0, x0^rho)'; exact as long as it is made of + - * / alone. */
  function evaluate(formula, variables) {
    if (formula.startsWith("kept")) return variables.x0;
    const tokens = [...formula.matchAll(TOKEN)].map((match) => match[1]);
    let at = 0;
    const take = (token) => (tokens[at] === token ? ((at += 1), true) : false);
    const arithmetic = (a, b, exact, plain) => (isExact(a) && isExact(b) ? exact(a, b) : plain(number(a), number(b)));
    function sum() {
      let left = product();
      for (;;) {
        if (take("+")) left = arithmetic(left, product(), (a, b) => fraction(a.n * b.d + b.n * a.d, a.d * b.d), (a, b) => a + b);
        else if (take("-")) left = arithmetic(left, product(), (a, b) => fraction(a.n * b.d - b.n * a.d, a.d * b.d), (a, b) => a - b);
        else return left;
      }
    }
    function product() {
      let left = power();
      for (;;) {
        if (take("*")) left = arithmetic(left, power(), times, (a, b) => a * b);
        else if (take("/")) left = arithmetic(left, power(), over, (a, b) => a / b);
        else return left;
      }
    }
    function power() {
      if (take("-")) { const value = power(); return isExact(value) ? fraction(-value.n, value.d) : -value; }
      const base = atom();
      return take("^") ? Math.pow(number(base), number(power())) : base;
    }
    function atom() {
      if (take("(")) { const value = sum(); take(")"); return value; }
      const token = tokens[at++];
      if (token in FUNCTIONS) {
        const values = [];
        take("(");
        do values.push(number(sum())); while (take(","));
        take(")");
        return FUNCTIONS[token](...values);
      }
      if (token in variables) return variables[token];
      if (token === "e") return Math.E;
      const value = exactOf(token ?? "");
      if (!value) throw new Error(`The formula ${formula} cannot be computed.`);
      return value;
    }
    return sum();
  }

  app.numbers = { fraction, number, times, over, gcd, exactOf, fromNumber, fromDouble, isExact, nearestWhole, limitDenominator,
    general, fixed, percent, repr, duration, spanText, evaluate };
})();
