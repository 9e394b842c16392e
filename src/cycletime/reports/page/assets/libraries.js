// Carried values in other libraries' words. The words come from cycletime.libraries as data, each with the name
// of the class that writes them; an export is read back, and what comes out differently is noted, as in Python.
(() => {
  const app = globalThis.cycletime;
  const { fraction, number, times, over, fromDouble, nearestWhole, limitDenominator, general, repr } = app.numbers;
  const KEEPS_THE_COUNT = 0.05, LARGEST_IN_RHYTHM = 64n;

  const whole = (value) => Number(value);
  /** The nearest whole number to a quotient, halves down; a half is exact in a double. */
  const nearest = (top, bottom, atLeast = 1) => Math.max(atLeast, Math.ceil(top / bottom - 0.5));
  const gcd = (a, b) => { while (b) [a, b] = [b, a % b]; return a; };
  const lcm = (a, b) => (a / gcd(a, b)) * b;

  /** So many updates after so many steps: the nearest of which one number is small. */
  function updateRhythm(perStep) {
    const exact = fromDouble(perStep);
    if (exact.n >= exact.d) return limitDenominator(exact, LARGEST_IN_RHYTHM);
    const { n, d } = limitDenominator(fraction(exact.d, exact.n), LARGEST_IN_RHYTHM);
    return fraction(d, n);
  }
  /** Python's round(): halves to the even number. */
  const halfEven = (value) => { const low = Math.floor(value), rest = value - low; return rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low; };

  /** A batch in whole units and a divisor of it, with the least sum of relative changes. */
  function nearestDivided(batch, divisor, unit, enough = 0) {
    let best = [batch, divisor], least = Infinity;
    for (let away = 0; away < divisor; away += 1) {
      if (away / divisor >= least || (away === 1 && least <= enough)) break;
      for (const near of [divisor - away, divisor + away]) {
        const both = lcm(near, unit), multiple = both * nearest(batch, both);
        const change = Math.abs(multiple / batch - 1) + away / divisor;
        if (change < least) [best, least] = [[multiple, near], change];
      }
    }
    return best;
  }

  // By the class of a library's words: the sizes in these words, what the library makes of them, and its notes.
  const SIZES = {
    Sized(words, { batch: asked, minibatch: m }, nEnvs) {
      let minibatch = Math.max(m, words.smallest_minibatch), batch;
      const unit = words.collects_whole_vector_steps ? nEnvs : 1;
      if (words.only_whole_minibatches) [batch, minibatch] = nearestDivided(asked, minibatch, unit);
      else {
        batch = unit * nearest(asked, unit, Math.ceil(words.smallest_minibatch / unit));
        minibatch = Math.min(minibatch, batch);
      }
      const perEnv = words.size_is_per_env;
      const said = { [words.size.name]: perEnv ? Math.floor(batch / nEnvs) : batch };
      if (words.minibatch) said[words.minibatch.name] = minibatch;
      if (words.buffer) said[words.buffer.name] = batch;
      const gets = { batch: perEnv ? said[words.size.name] * nEnvs : batch };
      if (words.minibatch) gets.minibatch = minibatch;
      const both = lcm(minibatch, unit), near = both * nearest(batch, both);
      const instead = Math.abs(near / batch - 1) <= KEEPS_THE_COUNT ? `; ${words.size.name} ${perEnv ? near / nEnvs : near} would divide` : "";
      const tail = words.tail.replace("{left}", batch % minibatch).replace("{m}", minibatch).replace("{instead}", instead);
      return { said, gets, notes: words.tail && batch % minibatch ? [tail] : [] };
    },
    Counted(words, { batch: asked, ratio }, nEnvs) {
      let count = whole(nearestWhole(ratio)), rollout;
      if (words.only_whole_minibatches) {
        const [batch, divisor] = nearestDivided(asked, count, nEnvs, KEEPS_THE_COUNT);
        [rollout, count] = [Math.floor(batch / nEnvs), divisor];
      } else rollout = nearest(asked, nEnvs, Math.ceil(count / nEnvs));
      const batch = rollout * nEnvs, m = Math.floor(batch / count), left = batch % count;
      const facts = { slices: Math.ceil(batch / m), m, left, count, rollout };
      const notes = [left ? words.tail : "", words.remark].filter(Boolean)
        .map((note) => note.replace(/\{(slices|m|left|count|rollout)\}/g, (_, name) => facts[name]));
      return { said: { [words.rollout.name]: rollout, [words.count.name]: count }, gets: { batch, minibatch: m }, notes };
    },
    Brax(words, { batch, ratio, dt }, nEnvs) {
      const count = whole(nearestWhole(ratio)), trajectories = nEnvs / gcd(nEnvs, count);
      const unroll = nearest(batch, trajectories * count);
      const said = { [words.unroll.name]: unroll, [words.trajectories.name]: trajectories, [words.count.name]: count };
      const minibatch = trajectories * unroll;
      const notes = [`{library} cuts its advantages at the end of each unroll: after ${unroll} agent steps, ${app.inSeconds(unroll * dt)}.`];
      return { said, gets: { batch: minibatch * count, minibatch }, notes };
    },
    Puffer(words, { batch, minibatch }, nEnvs) {
      const horizon = nearest(batch, nEnvs), horizons = Math.min(nEnvs, nearest(minibatch, horizon));
      const said = { [words.horizon.name]: horizon, [words.minibatch.name]: horizon * horizons };
      const notes = ["{library} draws its mini-batches by priority: some samples come twice in an epoch and some never."];
      return { said, gets: { batch: horizon * nEnvs, minibatch: horizon * horizons }, notes };
    },
  };

  const inWholeRounds = (perStep, nEnvs) => {
    const perRound = perStep * nEnvs;
    return (perRound >= 1 ? halfEven(perRound) : 1 / halfEven(1 / perRound)) / nEnvs;
  };
  // By the class of a library's words for updates: what is said, and the updates per step that this means.
  const UPDATES = {
    UpdatesPerPeriod(words, perStep, nEnvs) {
      const perVectorStep = times(perStep, fraction(BigInt(nEnvs)));
      const said = { [words.updates.name]: whole(perVectorStep.n), [words.period.name]: whole(perVectorStep.d) };
      return [said, said[words.updates.name] / (said[words.period.name] * nEnvs)];
    },
    WholeUpdates(words, perStep, nEnvs) {
      const updates = whole(nearestWhole(times(perStep, fraction(BigInt(nEnvs)))));
      return [{ [words.updates.name]: updates }, updates / nEnvs];
    },
    UpdateRatio(words, perStep, nEnvs) {
      const said = { [words.ratio.name]: { float: number(perStep) } };
      if (words.collected) said[words.collected.name] = lcm(whole(perStep.d), nEnvs);
      return [said, number(perStep)];
    },
    ReplayRatio(words, perStep, nEnvs, minibatch) {
      const m = minibatch ?? words.default_minibatch, ratio = inWholeRounds(number(perStep), nEnvs) * m;
      return [{ [words.ratio.name]: { float: ratio } }, inWholeRounds(ratio / m, nEnvs)];
    },
    UpdatePeriod(words, perStep) {
      const many = perStep.n >= perStep.d, count = whole(nearestWhole(many ? perStep : over(fraction(1n), perStep)));
      return [{ [words.period.name]: many ? { float: 1 / count } : count }, many ? count : 1 / count];
    },
  };

  function offPolicy(words, { values, actionSize }, nEnvs) {
    const count = (field) => (field in values ? whole(values[field].n) : undefined);
    const inVectorSteps = (field) => words.per_vector_step.includes(field);
    const counted = (field) => {
      const transitions = count(field);
      return transitions === undefined || !inVectorSteps(field) ? transitions : nearest(transitions, nEnvs, 0);
    };
    const said = {}, gets = { discount: values.discount }, tau = values.target_smoothing, perStep = values.updates_per_step;
    let updates = {};
    if (words.updates && perStep !== undefined) {
      [updates, gets.updates_per_step] = UPDATES[words.updates.kind](words.updates, updateRhythm(perStep), nEnvs, count("minibatch"));
    }
    const say = (word, value, field) => {
      if (!word || value === undefined) return;
      said[word.name] = value;
      const back = typeof value === "object" ? value.float : value;
      gets[field] = inVectorSteps(field) ? back * nEnvs : back;
    };
    say(words.discount, { float: values.discount }, "discount");
    if (tau !== undefined) {
      say(words.tau, { float: tau }, "target_smoothing");
      if (words.one_minus_tau) {
        const moves = updates[words.updates_per_target_move?.name] ?? 1;
        const kept = (1 - tau) ** moves;
        said[words.one_minus_tau.name] = { float: kept };
        gets.target_smoothing = 1 - kept ** (1 / moves);
      }
    }
    say(words.replay, counted("replay_capacity"), "replay_capacity");
    say(words.minibatch, count("minibatch"), "minibatch");
    for (const word of words.warmup) say(word, counted("warmup_steps"), "warmup_steps");
    if (words.entropy && values.target_entropy !== undefined) {
      if (words.entropy_per_dimension !== null && !actionSize) {
        throw new Error(`${words.entropy.name} is a multiple of the action's size: give action_size.`);
      }
      const share = words.entropy_per_dimension === null ? 1 : words.entropy_per_dimension / actionSize;
      said[words.entropy.name] = { float: values.target_entropy * share };
      gets.target_entropy = values.target_entropy;
    }
    return { said: { ...said, ...updates }, gets, notes: [] };
  }

  function sayRates(rates, values, said, gets) {
    for (const field of ["learning_rate", "clip", "noise_std"]) {
      const words = rates[field], value = values[field];
      if (!words || value === undefined) continue;
      gets[field] = value;
      if (words.kind === "LogInside") said[words.mapping] = { inside: { [words.name]: Math.log(value) } };
      else for (const word of words.words) said[word.name] = { float: value };
    }
  }

  const isClose = (a, b) => a === b || Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

  function differences(algorithm, values, gets, name, nEnvs, remarks, called) {
    const notes = [];
    for (const quantity of algorithm.quantities) {
      const { field } = quantity;
      if (!(field in values)) continue;
      const value = number(values[field]);
      if (field in gets && !app.isAllowed(quantity, gets[field])) {
        throw new Error(`${called(field)} is ${quantity.whole ? gets[field] : repr(gets[field])}: it must be ${app.allowed(quantity)}.`);
      }
      if (!(field in gets)) {
        const remark = remarks[field] ? ` (${remarks[field]})` : "";
        notes.push(`${name} has no setting for ${field}${remark}: ${general(value, 9)} is not in these values.`);
      } else if (!isClose(value, gets[field])) {
        const envs = nEnvs > 1 ? ` with ${nEnvs} environments` : "";
        notes.push(`${name} cannot express ${field} ${general(value, 9)}${envs}: the nearest is ${general(gets[field], 9)}.`);
      }
    }
    return notes;
  }

  const text = (value) => {
    if (typeof value === "number") return String(value);
    if ("float" in value) return repr(value.float);
    const inside = Object.entries(value.inside).map(([name, each]) => `'${name}': ${repr(each)}`);
    return `{${inside.join(", ")}}`;
  };

  /** Carried values in a library's words: lines 'name = value' and notes. */
  app.exportTo = (tables, carried, libraryName, nEnvs = 1) => {
    const library = tables.libraries[libraryName], words = library.algorithms[carried.algorithm];
    const algorithm = tables.algorithms[carried.algorithm], values = carried.after;
    let found;
    if (words.kind === "OffPolicyTable") found = offPolicy(words, { values, actionSize: carried.actionSize }, nEnvs);
    else {
      const m = values.minibatch ?? values.batch, first = carried.before;
      const ratio = values.minibatch ? over(first.batch, first.minibatch) : fraction(1n);
      found = SIZES[words.kind](words, { batch: whole(values.batch.n), minibatch: whole(m.n), ratio, dt: number(carried.to) }, nEnvs);
      for (const [field, word] of [["discount", words.discount], ["trace_decay", words.trace_decay]]) {
        found.said[word.name] = { float: values[field] };
        found.gets[field] = values[field];
      }
    }
    sayRates(words.rates, values, found.said, found.gets);
    const said = words.n_envs ? { [words.n_envs.name]: nEnvs, ...found.said } : found.said;
    const called = (field) => {
      const theirs = Object.entries(library.fields[carried.algorithm]).find(([name, ours]) => ours === field && name in said);
      return theirs ? `${libraryName}'s ${theirs[0]}` : field;
    };
    const missing = differences(algorithm, values, found.gets, library.spoken, nEnvs, words.remarks ?? {}, called);
    return {
      lines: Object.entries(said).map(([name, value]) => `${name} = ${text(value)}`),
      notes: [...missing, ...found.notes.map((note) => note.replaceAll("{library}", library.spoken))],
    };
  };
})();
