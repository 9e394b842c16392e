// Acting until it is time to learn, by one warp: it holds the policy's weights in registers, a lane those of two hidden
// units, and all lanes follow the task together.
#pragma once
#include "memory.cuh"
#include "random.cuh"
#include "tiles.cuh"

// Sums of two numbers over the warp, by products with ones on the tensor cores: that takes half as long as five exchanges.
// All lanes must get the same bits, since each follows the task by itself: rows of ones make equal sums, as the check of a
// card finds by its actions.
DEVICE void sum_over_lanes(const float (&share)[2], float (&sum)[2]) {
    const float rows[4] = {1, 0, 0, 1}, ones[2] = {1, 1};  // rows below the eighth are of the first number
    Split<2> given(share);
    float over_t[2][4] = {}, total[2][4] = {};
    machine::multiply(over_t[0], rows, given.high);
    machine::multiply(over_t[1], rows, given.low);
    float part[4];
#pragma unroll
    for (int i = 0; i < 4; i++) part[i] = over_t[0][i] + over_t[1][i];
    Split<4> parts(part);
    machine::multiply(total[0], parts.high, ones);
    machine::multiply(total[1], parts.low, ones);
    sum[0] = total[0][0] + total[1][0];
    sum[1] = total[0][2] + total[1][2];
}

struct Actor {
    float second[2][HIDDEN], second_bias[2], last[2][ACTIONS], last_bias[ACTIONS], std[ACTIONS];
    Acting& acting;
    int lane;

    DEVICE Actor(const Small& policy, const float* matrix, Acting& acting, int lane) : acting(acting), lane(lane) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int unit = lane + 32 * half;
            for (int i = 0; i <= OBSERVATION; i++) acting.first[unit][i] = policy.first[at(i, unit)];
#pragma unroll
            for (int i = 0; i < HIDDEN; i++) second[half][i] = matrix[at(unit, i)];
            second_bias[half] = policy.second_bias[unit];
            last[half][0] = policy.last[unit * ACTIONS];
            last[half][1] = policy.last[unit * ACTIONS + 1];
        }
#pragma unroll
        for (int i = 0; i < ACTIONS; i++) {
            last_bias[i] = policy.last_bias[i];
            std[i] = machine::exp2_of(policy.log_std[i] * 1.4426950408889634f);
        }
    }

    DEVICE float first_layer(int unit, const float (&seen)[OBSERVATION]) const {
        const float4* four = reinterpret_cast<const float4*>(acting.first[unit]);
        float4 a = four[0], b = four[1], c = four[2];
        float low = c.y + seen[0] * a.x + seen[1] * a.y + seen[2] * a.z + seen[3] * a.w;
        float high = seen[4] * b.x + seen[5] * b.y + seen[6] * b.z + seen[7] * b.w + seen[8] * c.x;
        return tanh_of(low + high);
    }

    DEVICE void mean(const float (&seen)[OBSERVATION], float (&mean)[ACTIONS]) const {
        float one = first_layer(lane, seen), another = first_layer(lane + 32, seen);
        machine::wait_for_warp();  // all lanes have read the hidden units of the step before
        acting.hidden[lane] = one;
        acting.hidden[lane + 32] = another;
        machine::wait_for_warp();
        float two[2][4] = {{second_bias[0], 0, 0, 0}, {second_bias[1], 0, 0, 0}};
#pragma unroll
        for (int i = 0; i < HIDDEN; i += 4) {
            float4 four = *reinterpret_cast<const float4*>(&acting.hidden[i]);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                two[half][0] += four.x * second[half][i];
                two[half][1] += four.y * second[half][i + 1];
                two[half][2] += four.z * second[half][i + 2];
                two[half][3] += four.w * second[half][i + 3];
            }
        }
        float low = tanh_of((two[0][0] + two[0][1]) + (two[0][2] + two[0][3]));
        float high = tanh_of((two[1][0] + two[1][1]) + (two[1][2] + two[1][3]));
        float share[ACTIONS];
#pragma unroll
        for (int i = 0; i < ACTIONS; i++) share[i] = low * last[0][i] + high * last[1][i];
        sum_over_lanes(share, mean);
#pragma unroll
        for (int i = 0; i < ACTIONS; i++) mean[i] += last_bias[i];
    }

    // The noise of 32 agent steps, of which one is given; a lane draws that of one step.
    DEVICE void draw_noise(unsigned seed, int step) const {
        Words words = philox(seed, NOISE, step / 32 * 32 + lane, 0);
        float2 drawn;
        normals(words.word[0], words.word[1], drawn.x, drawn.y);
        machine::wait_for_warp();
        acting.noise[lane] = drawn;
        machine::wait_for_warp();
    }
};

DEVICE void write_sight(float* row, const float (&seen)[OBSERVATION], const float (&action)[ACTIONS]) {
    float4* words = reinterpret_cast<float4*>(row);
    words[0] = {seen[0], seen[1], seen[2], seen[3]};
    words[1] = {seen[4], seen[5], seen[6], seen[7]};
    words[2] = {seen[8], 1, action[0], action[1]};
}

// What the agent sees where no action follows. All of the row is written: what another run left there may be no number,
// and that times zero is none either.
DEVICE void write_last_sight(float* row, const float (&seen)[OBSERVATION]) {
    const float none[ACTIONS] = {};
    write_sight(row, seen, none);
    reinterpret_cast<float4*>(row)[3] = {0, 0, 0, 0};
}

// What comes of an action; until the advantages are known, the reward lies in their place.
DEVICE void write_outcome(float* row, float reward, int next) {
    reinterpret_cast<float4*>(row)[3] = {reward, 0, 0, machine::as_float(next)};
}

// Fills the batch; how many rows there are, with the successor of the last and the last observations of episodes. What
// happens at few steps is behind one condition, and what each step needs is read once: a step takes its latency.
template <class World>
DEVICE_APART int roll_out(Shared& shared, const Run& run, Scratch scratch, float* records) {
    int lane = machine::thread() % 32;
    Acting& acting = shared.network[0].acting;
    Actor actor(shared.network[0].weight, shared.network[0].second, acting, lane);
    Position& position = shared.position;
    World world(run.env_dt_s);
    const int batch = run.batch, cycle_steps = run.cycle_steps, limit_steps = run.limit_steps;
    const float second_std = run.actions > 1 ? actor.std[1] : 0;
    int episode = position.episode, episode_steps = position.episode_steps, record = position.records;
    int step = position.agent_steps, ended_env_steps = position.ended_env_steps;
    float episode_return = position.episode_return;
    if (position.status == FRESH)
        world.reset(philox(run.seed, STARTS, episode, 0));
    else
        world.load(position);
    float seen[OBSERVATION];
    world.observe(seen);
    actor.draw_noise(run.seed, step);
    int stored = 0, extra = batch + 1;
    while (true) {
        float mean[ACTIONS], action[ACTIONS];
        float2 noise = acting.noise[step % 32];
        actor.mean(seen, mean);
        action[0] = mean[0] + actor.std[0] * noise.x;
        action[1] = mean[1] + second_std * noise.y;
        bool stores = stored < batch;
        float* row = &scratch.rows[stored * INPUTS];
        if (stores && lane == 0) write_sight(row, seen, action);
        bool terminated = false;
        float reward = world.cycle(action, cycle_steps, limit_steps, terminated);
        world.observe(seen);
        bool ended = terminated || world.steps >= limit_steps;
        episode_return += reward;
        episode_steps++;
        step++;
        if (stores && lane == 0) write_outcome(row, reward, stored + 1);
        stored += stores;
        if (!ended && stored < batch && step % 32 != 0) continue;
        if (step % 32 == 0) actor.draw_noise(run.seed, step);
        if (ended && stores) {
            bool goes_on = !terminated && !run.limit_is_terminal;
            if (lane == 0) {
                write_outcome(row, reward, ENDED | (goes_on ? extra : TERMINAL));
                if (goes_on) write_last_sight(&scratch.rows[extra * INPUTS], seen);
            }
            if (goes_on) extra++;
        }
        if (stored == batch && lane == 0 && (stores || (ended && run.ends_with_episode)))
            write_last_sight(&scratch.rows[batch * INPUTS], seen);
        if (ended) {
            if (lane == 0) {
                float* written = records + record * RECORD_WORDS;
                written[0] = episode_return;
                written[1] = machine::as_float(world.steps);
                written[2] = machine::as_float(episode_steps);
            }
            record++, episode++;
            ended_env_steps += world.steps;
            episode_return = 0, episode_steps = 0;
            world.reset(philox(run.seed, STARTS, episode, 0));
            world.observe(seen);
        }
        if (stored == batch && (ended || !run.until_episode_end)) break;
    }
    machine::wait_for_warp();
    if (lane == 0) {
        position.status = GOING;
        position.episode = episode, position.episode_steps = episode_steps, position.records = record;
        position.agent_steps = step, position.ended_env_steps = ended_env_steps;
        position.episode_return = episode_return;
        world.save(position);
    }
    return extra;
}
