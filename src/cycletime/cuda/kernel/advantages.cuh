// Between acting and learning: values, old log-probabilities, generalised advantages, and what a learning did.
#pragma once
#include "update.cuh"

// Values of all rows by one half of the block; means and log-probabilities of the batch by the other.
DEVICE_APART void evaluate(Shared& shared, const Run& run, Scratch scratch, int rows) {
    Place place = Place::here();
    Network& network = shared.network[place.network];
    if (place.network == 1) {
        for_each_row(network, scratch.rows, rows, place, [&](int row, int sample) {
            scratch.asides[row * ASIDE + VALUE] = output(network, sample, 0);
        });
    } else {
        for_each_row(network, scratch.rows, run.batch, place, [&](int row, int sample) {
            float mean[ACTIONS] = {output(network, sample, 0), output(network, sample, 1)}, away[ACTIONS];
            const float* action = &scratch.rows[row * INPUTS + ACTION];
            scratch.asides[row * ASIDE + OLD_MEAN] = mean[0];
            scratch.asides[row * ASIDE + OLD_MEAN + 1] = mean[1];
            scratch.rows[row * INPUTS + OLD_LOG_PROBABILITY] =
                log_probability(network, mean, action, run.actions, away);
        });
    }
    machine::wait_for_block();
}

// Sums of two numbers over the block, the same for any schedule.
DEVICE void sum_over_block(Shared& shared, float& first, float& second) {
    int warp = machine::thread() / 32;
    for (int mask = 16; mask > 0; mask /= 2) {
        first += machine::from_mirror(first, mask);
        second += machine::from_mirror(second, mask);
    }
    if (machine::thread() % 32 == 0) shared.network[1].sums[warp][0] = first, shared.network[1].sums[warp][1] = second;
    machine::wait_for_block();
    first = second = 0;
    for (int i = 0; i < THREADS / 32; i++) first += shared.network[1].sums[i][0], second += shared.network[1].sums[i][1];
    machine::wait_for_block();
}

// One step backwards of A = error + decay A': the error and the decay of a row.
DEVICE void row_error(const Run& run, Scratch scratch, int row, float& error, float& decay) {
    int next = __builtin_bit_cast(int, scratch.rows[row * INPUTS + NEXT_ROW]);
    float value = scratch.asides[row * ASIDE + VALUE], reward = scratch.rows[row * INPUTS + ADVANTAGE];
    float after = next & TERMINAL ? 0 : scratch.asides[(next & (TERMINAL - 1)) * ASIDE + VALUE];
    error = reward + run.discount * after - value;
    decay = next & ENDED ? 0 : run.discount * run.trace_decay;
}

// Generalised advantages: each thread folds its stretch of rows into one step, the steps are walked through, and each
// thread unfolds its stretch again. Then all are shifted and scaled to mean 0 and standard deviation 1.
DEVICE_APART void find_advantages(Shared& shared, const Run& run, Scratch scratch) {
    int thread = machine::thread(), stretch = (run.batch + THREADS - 1) / THREADS;
    int first = min(thread * stretch, run.batch), end = min(first + stretch, run.batch);
    float sum = 0, product = 1, error, decay;
    for (int row = end - 1; row >= first; row--) {
        row_error(run, scratch, row, error, decay);
        sum = error + decay * sum;
        product *= decay;
    }
    shared.network[1].sums[thread][0] = sum;
    shared.network[1].sums[thread][1] = product;
    machine::wait_for_block();
    if (thread == 0) {
        float later = 0;
        for (int i = THREADS - 1; i >= 0; i--) {
            float before = later;
            later = shared.network[1].sums[i][0] + shared.network[1].sums[i][1] * later;
            shared.network[1].sums[i][0] = before;
        }
    }
    machine::wait_for_block();
    float advantage = shared.network[1].sums[thread][0], total = 0, nothing = 0;
    machine::wait_for_block();
    for (int row = end - 1; row >= first; row--) {
        row_error(run, scratch, row, error, decay);
        advantage = error + decay * advantage;
        scratch.asides[row * ASIDE + REWARD] = scratch.rows[row * INPUTS + ADVANTAGE];
        scratch.rows[row * INPUTS + ADVANTAGE] = advantage;
        scratch.rows[row * INPUTS + LAMBDA_RETURN] = advantage + scratch.asides[row * ASIDE + VALUE];
        total += advantage;
    }
    sum_over_block(shared, total, nothing);
    float mean = total / run.batch, squares = 0;
    for (int row = first; row < end; row++) {
        float away = scratch.rows[row * INPUTS + ADVANTAGE] - mean;
        squares += away * away;
    }
    sum_over_block(shared, squares, nothing);
    float per_deviation = 1 / (sqrtf(squares / run.batch) + 1e-8f);
    for (int row = first; row < end; row++) {
        float& kept = scratch.rows[row * INPUTS + ADVANTAGE];
        kept = (kept - mean) * per_deviation;
    }
    machine::wait_for_block();
}

// What a learning did, on the whole batch, as the agent in cycletime/agents/ppo.py reports it.
DEVICE_APART void report(Shared& shared, const Run& run, Scratch scratch, const float (&old_log_std)[ACTIONS],
                   float* out) {
    Place place = Place::here();
    Network& network = shared.network[place.network];
    float loss = 0, divergence = 0, clips = 0;
    if (place.network == 1) {
        for_each_row(network, scratch.rows, run.batch, place, [&](int row, int sample) {
            float error = scratch.rows[row * INPUTS + LAMBDA_RETURN] - output(network, sample, 0);
            loss += error * error;
        });
    } else {
        for_each_row(network, scratch.rows, run.batch, place, [&](int row, int sample) {
            const float* kept = &scratch.rows[row * INPUTS];
            float mean[ACTIONS] = {output(network, sample, 0), output(network, sample, 1)}, away[ACTIONS];
            float now = log_probability(network, mean, kept + ACTION, run.actions, away);
            float ratio = exp_of(now - kept[OLD_LOG_PROBABILITY]), advantage = kept[ADVANTAGE];
            float bounded = fminf(fmaxf(ratio, 1 - run.clip), 1 + run.clip);
            loss -= fminf(ratio * advantage, bounded * advantage);
            clips += fabsf(ratio - 1) > run.clip ? 1 : 0;
            for (int i = 0; i < run.actions; i++) {
                float moved = (mean[i] - scratch.asides[row * ASIDE + OLD_MEAN + i]) * exp_of(-network.weight.log_std[i]);
                float narrowed = old_log_std[i] - network.weight.log_std[i];
                divergence += 0.5f * (exp_of(2 * narrowed) + moved * moved - 1 - 2 * narrowed);
            }
        });
    }
    machine::wait_for_block();
    float policy_loss = place.network == 0 ? loss : 0, value_loss = place.network == 1 ? loss : 0;
    sum_over_block(shared, policy_loss, value_loss);
    sum_over_block(shared, divergence, clips);
    if (machine::thread() == 0) {
        float entropy = 0;
        for (int i = 0; i < run.actions; i++) entropy += network.weight.log_std[i] + 0.5f + LOG_SQRT_2_PI;
        out[0] = machine::as_float(shared.position.agent_steps);
        out[1] = policy_loss / run.batch, out[2] = value_loss / run.batch, out[3] = entropy;
        out[4] = divergence / run.batch, out[5] = clips / run.batch;
        out[6] = network.weight.log_std[0], out[7] = network.weight.log_std[1];
    }
    machine::wait_for_block();
}
