// An agent step: the policy acts, by all warps, and one warp follows the task and stores what came of it.
#pragma once
#include "learning.cuh"

namespace sac {

// The policy's outputs for one observation, in all threads. It is the first of 16 rows; what else is in them is not read.
DEVICE void outputs_for(Shared& shared, const Place& place, float (&outputs)[OUTPUTS]) {
    unsigned inputs[4] = {};
    if (place.g == 0) inputs[0] = bounded_halves(shared.seen[2 * place.t], shared.seen[2 * place.t + 1]);
    if (place.g == 0 && place.t < 2) inputs[2] = bounded_halves(shared.seen[8 + 2 * place.t], shared.seen[9 + 2 * place.t]);
    Units units;
    first_layer(inputs, shared, place, units);
    float sums[4][4] = {};  // each warp computes 32 units of the second layer
    const unsigned* weights_at = shared.matrix + place.matrix_down + place.warp * 4 * TILE;
#pragma unroll
    for (int k = 0; k < ACROSS; k += 2) {
        if (k % SLAB_ROWS == 0) bring_slab(shared, k / SLAB_ROWS);
        const unsigned left[4] = {units[k][0], units[k][1], units[k + 1][0], units[k + 1][1]};
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            unsigned weights[4];
            machine::load_tiles_across(weights, weights_at + (k % SLAB_ROWS * ACROSS + n) * TILE);
            machine::multiply_halves(sums[n], left, weights[0], weights[1]);
            machine::multiply_halves(sums[n + 1], left, weights[2], weights[3]);
        }
    }
    float share[OUTPUTS] = {};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int unit = (4 * place.warp + i / 2) * 8 + 2 * place.t + i % 2;
        float above = above_zero(sums[i / 2][i % 2] + shared.small.second_bias[unit]);
#pragma unroll
        for (int o = 0; o < OUTPUTS; o++) share[o] += above * shared.small.last[unit * OUTPUTS + o];
    }
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        share[o] = sum_over_t(share[o]);
        if (place.lane == 0) shared.shares[place.warp][o] = share[o];
    }
    meet();
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++) {
        outputs[o] = shared.small.last_bias[o];
        for (int warp = 0; warp < WARPS; warp++) outputs[o] += shared.shares[warp][o];
    }
}

// Draw the action of this step. The policy is in shared memory.
DEVICE_APART void act(Shared& shared) {
    Place place = Place::here();
    const Run& run = shared.run;
    float outputs[OUTPUTS];
    outputs_for(shared, place, outputs);
    if (place.thread == 0) {
        int step = shared.position.agent_steps;
        Words words = philox(run.seed, NOISE, step, 0);
        float noise[ACTIONS];
        normals(words.word[0], words.word[1], noise[0], noise[1]);
        for (int i = 0; i < ACTIONS; i++) {
            float drawn = Drawn(outputs[i], outputs[ACTIONS + i], noise[i]).action;
            float action = step < run.warmup_steps ? symmetric(words.word[2 + i]) : drawn;
            shared.action[i] = i < run.actions ? action : 0;
        }
    }
    meet();
}

template <class World>
DEVICE void see(Shared& shared, const World& world, int lane) {
    float seen[OBSERVATION];
    world.observe(seen);
    machine::wait_for_warp();
    if (lane == 0) {
        for (int i = 0; i < OBSERVATION; i++) shared.seen[i] = seen[i];
        shared.seen[ONE] = 1, shared.seen[ONE + 1] = shared.seen[ONE + 2] = 0;
    }
    machine::wait_for_warp();
}

// Begin where the run was left, by one warp.
template <class World>
DEVICE_APART void look(Shared& shared) {
    Position& position = shared.position;
    int lane = machine::thread() % 32;
    World world(shared.run.env_dt_s);
    if (position.status == FRESH)
        world.reset(philox(shared.run.seed, STARTS, position.episode, 0));
    else
        world.load(position);
    machine::wait_for_warp();
    if (lane == 0) world.save(position), position.status = GOING;
    see(shared, world, lane);
}

// Hold the action for a cycle, and store what came of it, by one warp whose lanes do the same.
template <class World>
DEVICE_APART void step(Shared& shared, float* records) {
    const Run& run = shared.run;
    Position& position = shared.position;
    int lane = machine::thread() % 32;
    World world(shared.run.env_dt_s);
    world.load(position);
    float action[ACTIONS] = {shared.action[0], shared.action[1]}, next[OBSERVATION];
    bool terminated = false;
    float reward = world.cycle(action, run.cycle_steps, run.limit_steps, terminated);
    world.observe(next);
    bool ended = terminated || world.steps >= run.limit_steps;
    bool goes_on = !(run.limit_is_terminal ? ended : terminated);
    int episode = position.episode, episode_steps = position.episode_steps + 1, lasted = world.steps;
    float episode_return = position.episode_return + reward;
    if (ended) world.reset(philox(run.seed, STARTS, episode + 1, 0));
    machine::wait_for_warp();
    if (lane == 0) {
        float* row = run.replay + static_cast<long long>(position.agent_steps % run.capacity) * ROW_WORDS;
        for (int i = 0; i < ONE; i++) row[SEEN + i] = shared.seen[i], row[NEXT_SEEN + i] = next[i];
        row[ONE] = 1, row[ACTION] = action[0], row[ACTION + 1] = action[1];
        row[REWARD] = reward, row[GOES_ON] = goes_on ? 1 : 0, row[ROW_WORDS - 1] = 0;
        world.save(position);
        position.agent_steps++;
        position.episode_steps = ended ? 0 : episode_steps, position.episode_return = ended ? 0 : episode_return;
        if (ended) {
            float* written = records + position.records * RECORD_WORDS;
            written[0] = episode_return;
            written[1] = machine::as_float(lasted);
            written[2] = machine::as_float(episode_steps);
            position.records++, position.episode++;
            position.ended_env_steps += lasted;
        }
    }
    see(shared, world, lane);
}

}  // namespace sac
