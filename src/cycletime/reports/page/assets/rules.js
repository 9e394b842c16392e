// Hyper-parameters at another cycle time: the tables come from cycletime.rules, and ./check page compares the results
// and the notes with Python's over thousands of random inputs.
(() => {
  const app = globalThis.cycletime;
  const { fraction, number, over, fromNumber, isExact, nearestWhole, general, fixed, percent, repr, duration, spanText, evaluate } =
    app.numbers;
  const REPORTED_SHIFT = 0.01;

  const shown = (value) => (isExact(value) ? String(value.n) : repr(value));
  const plain = (value) => (isExact(value) ? String(value.n) : general(value));

  const allowed = app.allowed = (quantity) => {
    if (quantity.whole) return `a whole number of at least ${general(quantity.low)}`;
    if (quantity.high !== null) return `a number in ${quantity.low_allowed ? "[" : "("}${general(quantity.low)}, ${general(quantity.high)}]`;
    return quantity.low === null ? "a finite number" : `a number greater than ${general(quantity.low)}`;
  };

  const isAllowed = app.isAllowed = ({ low, high, low_allowed: lowAllowed }, size) =>
    (low === null || low < size || (lowAllowed && size === low)) && (high === null || size <= high);

  /** A typed value: exact if it counts something, else a number. */
  function read(quantity, text) {
    const exact = app.numbers.exactOf(text.trim().toLowerCase().replace("e+", "e"));
    const value = exact && (quantity.whole ? exact : number(exact));
    const inRange = exact && (!quantity.whole || exact.d === 1n) && isAllowed(quantity, number(value));
    if (!inRange) throw new Error(`${quantity.field} is ${text.trim()}: it must be ${allowed(quantity)}.`);
    return value;
  }

  const inSeconds = app.inSeconds = (span) => (!Number.isFinite(span) ? "unlimited" : span < 1000 ? `${general(span, 3)} s` : `${fixed(span, 0)} s`);

  function secondsOf(algorithm, values, dt) {
    const found = {};
    for (const quantity of algorithm.quantities) {
      if (!quantity.seconds || !(quantity.field in values)) continue;
      const perUpdate = quantity.field === "target_smoothing" && values.updates_per_step ? values.updates_per_step : 1;
      const span = evaluate(quantity.seconds, { x: number(values[quantity.field]), dt: number(dt) / perUpdate });
      found[quantity.field] = Number.isFinite(span) ? Math.abs(span) : Infinity;
    }
    return found;
  }

  function lawsOf(algorithm, ruleName, also, actionSize, given, rho) {
    const laws = { ...algorithm.rules[ruleName] };
    for (const [field, formula] of Object.entries(laws)) {
      const usual = Object.values(algorithm.parts).find((part) => part.field === field)?.baseline;
      const unmoved = !(field in given) && typeof usual === "number" && number(evaluate(formula, { x0: usual, rho })) === usual;
      if (unmoved) delete laws[field]; // nothing need be said of it
    }
    for (const name of also) {
      const part = algorithm.parts[name];
      if (name === "target-entropy" && !actionSize) {
        throw new Error("The part 'target-entropy' needs action_size=..., the number of action dimensions.");
      }
      laws[part.field] = part.formula.replace("d/2", general(actionSize / 2));
    }
    for (const { field, with_updates: withUpdates } of also.map((name) => algorithm.parts[name])) {
      laws[field] = withUpdates?.[laws.updates_per_step] ?? laws[field];
    }
    return laws;
  }

  /** Fill in what is to be carried and was not given. */
  function withBaselines(algorithm, values, laws, actionSize, notes) {
    const filled = { ...values };
    for (const field of Object.keys(laws)) {
      if (field in filled) continue;
      const part = Object.values(algorithm.parts).find((each) => each.field === field);
      if (!part || part.baseline === null) throw new Error(`${field} was not given, and the paper has no value for it: give one.`);
      const whole = algorithm.quantities.find((each) => each.field === field).whole;
      const isFloat = part.baseline === "-d" || !Number.isInteger(part.baseline) || field === "noise_std";
      const value = part.baseline === "-d" ? -actionSize : part.baseline;
      filled[field] = whole ? fromNumber(value) : value;
      notes.push(`${field} was not given: ${part.whose} ${isFloat ? repr(value) : value} is used.`);
    }
    return filled;
  }

  function representable(quantity, exact, before, from, to) {
    if (quantity.whole && (isExact(exact) || Number.isFinite(exact))) {
      return fraction(nearestWhole(exact, BigInt(quantity.low)));
    }
    const value = number(exact);
    const atAnEnd = (value === quantity.low || value === quantity.high) && number(before) !== value;
    if (atAnEnd || !Number.isFinite(value)) {
      throw new Error(`${quantity.field} ${shown(before)} cannot be carried from ${spanText(from)} to ${spanText(to)}: it would be ` +
        `${Number.isFinite(value) ? repr(value) : general(value)} in double precision; take a cycle time closer to ${spanText(from)}.`);
    }
    return value;
  }

  function horizonNote(algorithm, ruleName, before, after, seconds) {
    const shorter = algorithm.quantities
      .filter(({ field, is_horizon: isHorizon }) => isHorizon && seconds.after[field] < seconds.before[field] * (1 - REPORTED_SHIFT))
      .map(({ field }) => `${field} ${general(number(after[field]))} from ${inSeconds(seconds.before[field])} to ${inSeconds(seconds.after[field])}`);
    return shorter.length ? [`Rule '${ruleName}' shrinks horizons: ${shorter.join(", ")}.`] : [];
  }

  /** What PPO says of its mini-batches; named rules keep their number but for rounding. */
  function ratioNotes(before, after) {
    const ratio = over(after.batch, after.minibatch), old = over(before.batch, before.minibatch);
    if (ratio.n === old.n && ratio.d === old.d) return [];
    const shift = number(over(ratio, old)) - 1;
    const moved = `batch / minibatch moved from ${general(number(old), 4)} to ${general(number(ratio), 4)} (${percent(shift)})`;
    const count = ({ n, d }) => (n + d - 1n) / d;
    if (count(ratio) !== count(old)) return [`Mini-batches per epoch: ${count(old)} became ${count(ratio)}, since rounding ${moved}.`];
    return Math.abs(shift) > REPORTED_SHIFT ? [`Rounding ${moved}.`] : [];
  }

  /** The rule for values at the cycle time that they are from, and why: as cycletime.rules.recommend. */
  app.recommend = (algorithm, texts) => {
    const fields = Object.entries(algorithm.recommended.defaults);
    const tuned = fields.some(([field, usual]) => texts[field]?.trim() && Number(texts[field]) !== usual);
    return algorithm.recommended[tuned ? "tuned" : "untuned"];
  };

  function closingLine(algorithm, asked, from, to) {
    const { rule, why: first } = app.recommend(algorithm, asked.values), { rules, recommended: { many } } = algorithm;
    const more = (asked.environments ?? 1) >= many.environments ? many.why : "", why = first + more;
    if (number(from) === number(to)) return `Nothing changes with the cycle time: both are ${spanText(to)}.`;
    const same = JSON.stringify(rules[rule]) === JSON.stringify(rules[asked.rule]);
    if (same && asked.also.length) return `Use these values: ${why.split(/\.(?: |$)/)[0]}. What --also adds was not in that trial.${more}`;
    return same ? `Use these values: ${why}` : `Use --rule ${rule} instead of ${asked.rule}: ${why}`;
  }

  function updatesNote(before, after) {
    const more = (after.updates_per_step ?? 1) / (before.updates_per_step ?? 1);
    return more > 1 ? [`${general(more)} times as many updates per step cost ${general(more)} times the learning.`] : [];
  }

  function check(name, values) {
    if (name === "ppo" && number(values.minibatch) > number(values.batch)) {
      throw new Error(`minibatch is ${values.minibatch.n}: it must be at most the batch, ${values.batch.n}.`);
    }
  }

  /**
   * Carry values: {algorithm, from, to, rule, also, actionSize, values} with texts as they are typed; a value that is
   * empty was not given. The result has rows for a table, notes, and the values before and after.
   */
  app.carry = (tables, asked) => {
    const algorithm = tables.algorithms[asked.algorithm], from = duration(asked.from), to = duration(asked.to);
    const rho = over(to, from), actionSize = asked.actionSize ? Number(asked.actionSize) : 0;
    const given = {}, notes = [];
    for (const quantity of algorithm.quantities) {
      const text = asked.values[quantity.field] ?? "";
      if (text.trim()) given[quantity.field] = read(quantity, text);
    }
    const usual = Object.entries(algorithm.baseline).filter(([field]) => !(field in given));
    for (const [field, value] of usual) {
      given[field] = algorithm.quantities.find((each) => each.field === field).whole ? fromNumber(value) : value;
    }
    check(asked.algorithm, given);
    const laws = lawsOf(algorithm, asked.rule, asked.also, actionSize, given, rho);
    const before = withBaselines(algorithm, given, laws, actionSize, notes);
    const after = { ...before };
    for (const quantity of algorithm.quantities) {
      const { field } = quantity;
      if (!(field in laws)) continue;
      const exact = evaluate(laws[field], { x0: before[field], rho });
      after[field] = representable(quantity, exact, before[field], from, to);
      const shift = isExact(exact) && exact.n ? number(over(after[field], exact)) - 1 : 0;
      if (quantity.whole && Math.abs(shift) > REPORTED_SHIFT) {
        notes.push(`${field} ${general(number(exact))} was rounded to ${after[field].n} (${percent(shift)}).`);
      }
    }
    check(asked.algorithm, after);
    const seconds = { before: secondsOf(algorithm, before, from), after: secondsOf(algorithm, after, to) };
    notes.push(...horizonNote(algorithm, asked.rule, before, after, seconds));
    if (asked.algorithm === "ppo") notes.push(...ratioNotes(before, after));
    notes.push(...updatesNote(before, after));
    if (algorithm.rules_of) {
      notes.push(`The paper has no ${asked.algorithm.toUpperCase()}: these are rules for ${algorithm.rules_of}, untested on it.`);
    }
    const rows = algorithm.quantities.filter(({ field }) => field in after).map(({ field, symbol, span }) => {
      const spans = [seconds.before[field], seconds.after[field]].filter((each) => each !== undefined).map(inSeconds);
      return {
        field, symbol, span,
        before: plain(before[field]),
        after: plain(after[field]),
        formula: laws[field] ?? "not touched",
        seconds: spans[0] === spans[1] ? spans[0] ?? "" : `${spans[0].replace(/ s$/, "")} -> ${spans[1]}`,
      };
    });
    return { algorithm: asked.algorithm, from, to, rho, actionSize, before, after, seconds, rows, notes,
      closing: closingLine(algorithm, asked, from, to) };
  };
})();
