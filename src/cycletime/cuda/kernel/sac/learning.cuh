// One gradient step of SAC, as in cycletime/agents/sac.py: the critics, the policy, the temperature, and the targets, which
// follow the critics at once since nothing else of the step reads them.
#pragma once
#include "../random.cuh"
#include "../tiles.cuh"
#include "adam.cuh"
#include "memory.cuh"
#include "passes.cuh"

namespace sac {

constexpr float LN_2 = 0.6931471805599453f, LOG_SQRT_2_PI = 0.9189385332046727f;
constexpr float LEAST_LOG_STD = -20.0f, MOST_LOG_STD = 2.0f;

DEVICE float exp_of(float x) { return machine::exp2_of(x * 1.4426950408889634f); }
DEVICE float softplus(float x) { return fmaxf(x, 0) + LN_2 * machine::log2_of(1 + exp_of(-fabsf(x))); }

DEVICE float sum_over_block(Shared& shared, const Place& place, float value) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) value += machine::from_mirror(value, mask);
    meet();
    if (place.lane == 0) shared.shares[place.warp][0] = value;
    meet();
    float sum = 0;
    for (int warp = 0; warp < WARPS; warp++) sum += shared.shares[warp][0];
    return sum;
}

// One component of an action, drawn from the squashed normal distribution.
struct Drawn {
    float action, log_probability, spread, is_inside;

    DEVICE Drawn(float mean, float given_log_std, float noise) {
        float log_std = fminf(fmaxf(given_log_std, LEAST_LOG_STD), MOST_LOG_STD);
        is_inside = log_std == given_log_std ? 1.0f : 0.0f;
        spread = noise * exp_of(log_std);
        float raw = mean + spread;
        action = tanh_of(raw);
        float log_slope = 2 * (LN_2 - raw - softplus(-2 * raw));
        log_probability = -0.5f * noise * noise - log_std - LOG_SQRT_2_PI - log_slope;
    }
    DEVICE void clear() { action = log_probability = spread = is_inside = 0; }
};

// The words of a sample's inputs 8 to 15, of which the second holds the action.
DEVICE unsigned& action_word(unsigned* tiles, int sample) {
    return tiles[(sample / 8 * 2 + 1) * TILE + sample % 8 * 4 + 1];
}

DEVICE void write_inputs(unsigned* tiles, int sample, const float* numbers, int count) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        unsigned* word = &tiles[(sample / 8 * 2 + i / 4) * TILE + sample % 8 * 4 + i % 4];
        *word = bounded_halves(2 * i < count ? numbers[2 * i] : 0, 2 * i + 1 < count ? numbers[2 * i + 1] : 0);
    }
}

// What a thread knows of the sample that it drew.
struct Outcome {
    float reward, goes_on;
};

// Draw a sample for each thread: what the critics see, what the policy sees thereafter, and the noise of its actions.
DEVICE Outcome draw_sample(Shared& shared, int sample) {
    const Run& run = shared.run;
    unsigned update = shared.position.updates;
    Words one = philox(run.seed, LEARNING, update, sample), other = philox(run.seed, LEARNING, update, SAMPLES + sample);
    unsigned filled = min(shared.position.agent_steps, run.capacity);
    const float4* row =
        reinterpret_cast<const float4*>(run.replay + static_cast<long long>(one.word[0] % filled) * ROW_WORDS);
    float numbers[ROW_WORDS];
#pragma unroll
    for (int i = 0; i < ROW_WORDS / 4; i++) {
        float4 four = row[i];
        numbers[4 * i] = four.x, numbers[4 * i + 1] = four.y, numbers[4 * i + 2] = four.z, numbers[4 * i + 3] = four.w;
    }
    write_inputs(shared.inputs, sample, numbers, 12);
    Outcome outcome = {numbers[REWARD], numbers[GOES_ON]};
    numbers[NEXT_SEEN + OBSERVATION] = 1;
    write_inputs(shared.passing.stage, sample, numbers + NEXT_SEEN, OBSERVATION + 1);
    Samples& samples = shared.samples;
    normals(one.word[1], one.word[2], samples.next_noise[sample][0], samples.next_noise[sample][1]);
    normals(other.word[0], other.word[1], samples.spread[sample][0], samples.spread[sample][1]);
    return outcome;
}

DEVICE void load_inputs(unsigned (&inputs)[4], const unsigned* tiles, int sample, const Place& place) {
    machine::load_tiles(inputs, tiles + sample / 8 * 2 * TILE + place.inputs_down);
}

// A lane's component of an action: of row g for t = 0, 1, and of row g + 8 for t = 2, 3.
DEVICE Drawn draw_component(const float (&outputs)[2][OUTPUTS], const float (*noise)[ACTIONS], int sample, int actions,
                            const Place& place) {
    int second = place.t & 1, below = place.t & 2;
    float mean = machine::either(below, machine::either(second, outputs[1][1], outputs[1][0]),
                                 machine::either(second, outputs[0][1], outputs[0][0]));
    float log_std = machine::either(below, machine::either(second, outputs[1][3], outputs[1][2]),
                                    machine::either(second, outputs[0][3], outputs[0][2]));
    Drawn drawn(mean, log_std, noise[sample][second]);
    if (second >= actions) drawn.clear();
    return drawn;
}

// The policy at S', whose actions the targets will see.
DEVICE_APART void act_next(Shared& shared, int pass) {
    Place place = Place::here();
    int first = place.first_sample(pass), sample = first + place.g + place.t / 2 * 8;
    unsigned inputs[4];
    load_inputs(inputs, shared.passing.stage, first, place);
    Units units;
    UnitSums sums;
    float outputs[2][OUTPUTS];
    first_layer(inputs, shared, place, units);
    second_layer(units, shared, place, sums);
    last_layer(sums, shared, place, outputs);
    Drawn drawn = draw_component(outputs, shared.samples.next_noise, sample, shared.run.actions, place);
    float other = machine::from_mirror(drawn.action, 1);
    float both = drawn.log_probability + machine::from_mirror(drawn.log_probability, 1);
    machine::wait_for_warp();  // all lanes have read S'; what is drawn depends on it, but racecheck cannot know that
    if (place.t % 2 == 0) {
        action_word(shared.passing.stage, sample) = machine::halves(drawn.action, other);
        shared.samples.log_probability[sample] = both;
    }
}

// The policy at S; what its learning needs is kept.
DEVICE_APART void act_now(Shared& shared, unsigned* scratch, int pass) {
    Place place = Place::here();
    Samples& samples = shared.samples;
    int first = place.first_sample(pass), sample = first + place.g + place.t / 2 * 8, component = place.t % 2;
    unsigned inputs[4];
    load_inputs(inputs, shared.inputs, first, place);
    Units units;
    UnitSums sums;
    float outputs[2][OUTPUTS];
    first_layer(inputs, shared, place, units);
    unsigned signs[4];
    signs_of(units, signs);
#pragma unroll
    for (int i = 0; i < 4; i++) scratch[KEPT_SIGNS + (pass * 4 + i) * THREADS + place.thread] = signs[i];
    second_layer(units, shared, place, sums);
    last_layer(sums, shared, place, outputs);
#pragma unroll
    for (int n = 0; n < ACROSS; n++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            scratch[KEPT_UNITS + ((pass * ACROSS + n) * 2 + i) * THREADS + place.thread] =
                positive_halves(sums[n][2 * i], sums[n][2 * i + 1]);
    Drawn drawn = draw_component(outputs, samples.spread, sample, shared.run.actions, place);
    samples.action[sample][component] = drawn.action;
    samples.spread[sample][component] = drawn.spread;
    samples.is_inside[sample][component] = drawn.is_inside;
    float both = drawn.log_probability + machine::from_mirror(drawn.log_probability, 1);
    if (component == 0) samples.pull[sample][0] = both;  // until the backup has been made of what lies in its place
}

// What one of the critics or targets gives for all samples.
DEVICE_APART void evaluate(Shared& shared, unsigned* scratch, const unsigned* tiles, int network, int index) {
    Place place = Place::here();
    load_network<1>(shared, scratch, shared.run.state, network);
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        int first = place.first_sample(pass);
        unsigned inputs[4];
        load_inputs(inputs, tiles, first, place);
        Units units;
        UnitSums sums;
        float outputs[2][1];
        first_layer(inputs, shared, place, units);
        second_layer(units, shared, place, sums);
        last_layer(sums, shared, place, outputs);
        if (place.t == 0) {
            shared.samples.value[index][first + place.g] = outputs[0][0];
            shared.samples.value[index][first + place.g + 8] = outputs[1][0];
        }
    }
    meet();
}

// The same for a critic, and how it changes with the action.
DEVICE_APART void evaluate_action(Shared& shared, unsigned* scratch, int network, int index) {
    Place place = Place::here();
    Samples& samples = shared.samples;
    load_network<1>(shared, scratch, shared.run.state, network);
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        int first = place.first_sample(pass);
        unsigned inputs[4], signs[4];
        load_inputs(inputs, shared.inputs, first, place);
        Units units, slopes;
        UnitSums sums;
        float outputs[2][1], by_input[4] = {};
        first_layer(inputs, shared, place, units);
        signs_of(units, signs);
        second_layer(units, shared, place, sums);
        last_layer(sums, shared, place, outputs);
        if (place.t == 0) {
            samples.value[index][first + place.g] = outputs[0][0];
            samples.value[index][first + place.g + 8] = outputs[1][0];
        }
        const float pull[2][1] = {{1}, {1}};
        second_slopes<1, false>([&](int n, int i) { return sums[n][i]; }, pull, shared, place, false, slopes);
#pragma unroll
        for (int quarter = 0; quarter < 4; quarter++) {
            unsigned found[8][2];
            first_slopes(slopes, signs[quarter], quarter, shared, place, found);
            add_input_slopes(found, quarter, shared, place, by_input);
        }
        if (place.t == 1) {  // inputs 10 and 11
            float* low = samples.pull[first + place.g];
            float* high = samples.pull[first + place.g + 8];
            low[2 * index] = by_input[0], low[2 * index + 1] = by_input[1];
            high[2 * index] = by_input[2], high[2 * index + 1] = by_input[3];
        }
    }
    meet();
}

// The backward half of a learning pass: from the second layer's slopes to the first layer's gradient.
DEVICE void pass_back(Shared& shared, unsigned* scratch, const Units& slopes, const unsigned (&signs)[4],
                      const Place& place, int pass, float (&gradient)[4][4]) {
    keep_tiles<ACROSS / 2>(slopes, scratch + SLOPES, place.first_sample(pass), place);
#pragma unroll
    for (int quarter = 0; quarter < 4; quarter++) {
        unsigned found[8][2];
        first_slopes(slopes, signs[quarter], quarter, shared, place, found);
        add_first_gradient(found, shared, place, pass, gradient[quarter]);
    }
}

DEVICE_APART void learn_critic(Shared& shared, unsigned* scratch, int network) {
    Place place = Place::here();
    Samples& samples = shared.samples;
    float* errors = samples.value[network - CRITIC];
    load_network<1>(shared, scratch, shared.run.state, network);
    float gradient[4][4] = {};
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        int first = place.first_sample(pass);
        unsigned inputs[4], signs[4];
        load_inputs(inputs, shared.inputs, first, place);
        Units units, slopes;
        UnitSums sums;
        float outputs[2][1], pull[2][1];
        first_layer(inputs, shared, place, units);
        signs_of(units, signs);
        keep_tiles<ACROSS>(units, scratch + HIDDEN_UNITS, first, place);
        second_layer(units, shared, place, sums);
        last_layer(sums, shared, place, outputs);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int sample = first + place.g + 8 * i;
            float error = outputs[i][0] - samples.backup[sample];
            pull[i][0] = 2 * shared.run.critic_weight * error;
            if (place.t == 0) errors[sample] = error;
        }
        second_slopes<1, true>([&](int n, int i) { return sums[n][i]; }, pull, shared, place, pass > 0, slopes);
        pass_back(shared, scratch, slopes, signs, place, pass, gradient);
    }
    meet();
    Learner<true> learner(shared, scratch, network);
    move_small<1>(shared, place, learner, gradient);
    meet();
    move_second(shared, scratch, learner);
}

DEVICE_APART void learn_policy(Shared& shared, unsigned* scratch) {
    Place place = Place::here();
    load_network<OUTPUTS>(shared, scratch, shared.run.state, POLICY);
    float gradient[4][4] = {};
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        int first = place.first_sample(pass);
        unsigned inputs[4], signs[4];
        {
            load_inputs(inputs, shared.inputs, first, place);
            Units units;
            first_layer(inputs, shared, place, units);
            keep_tiles<ACROSS>(units, scratch + HIDDEN_UNITS, first, place);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) signs[i] = scratch[KEPT_SIGNS + (pass * 4 + i) * THREADS + place.thread];
        float pull[2][OUTPUTS];
#pragma unroll
        for (int i = 0; i < 2 * OUTPUTS; i++)
            pull[i / OUTPUTS][i % OUTPUTS] = shared.samples.pull[first + place.g + i / OUTPUTS * 8][i % OUTPUTS];
        Units kept, slopes;
#pragma unroll
        for (int i = 0; i < 2 * ACROSS; i++)
            kept[i / 2][i % 2] = scratch[KEPT_UNITS + (pass * ACROSS * 2 + i) * THREADS + place.thread];
        auto unit = [&](int n, int i) {
            float2 both = machine::from_halves(kept[n][i / 2]);
            return i % 2 ? both.y : both.x;
        };
        second_slopes<OUTPUTS, true>(unit, pull, shared, place, pass > 0, slopes);
        pass_back(shared, scratch, slopes, signs, place, pass, gradient);
    }
    // The policy does not see the actions, which lie among the inputs.
    if (place.g == ACTION - 8 || place.g == ACTION - 7)
#pragma unroll
        for (int quarter = 0; quarter < 4; quarter++) gradient[quarter][2] = gradient[quarter][3] = 0;
    meet();
    Learner<false> learner(shared, scratch, POLICY);
    move_small<OUTPUTS>(shared, place, learner, gradient);
    meet();
    move_second(shared, scratch, learner);
}

// How the policy's loss, alpha log pi - min q, changes with its outputs for a thread's sample; the loss itself.
DEVICE float pull_policy(Samples& samples, int sample, float alpha, float log_probability) {
    float (&pull)[OUTPUTS] = samples.pull[sample];
    int second = samples.value[1][sample] < samples.value[0][sample];
    float outputs[OUTPUTS];
#pragma unroll
    for (int i = 0; i < ACTIONS; i++) {
        float action = samples.action[sample][i], value_slope = second ? pull[2 + i] : pull[i];
        float slope = 2 * alpha * action - value_slope * (1 - action * action);
        outputs[i] = slope;
        outputs[ACTIONS + i] = samples.is_inside[sample][i] * (slope * samples.spread[sample][i] - alpha);
    }
    float loss = alpha * log_probability - fminf(samples.value[0][sample], samples.value[1][sample]);
#pragma unroll
    for (int i = 0; i < OUTPUTS; i++) pull[i] = outputs[i];
    return loss;
}

// Adam's step of log alpha.
DEVICE void move_temperature(Shared& shared, float mean_log_probability) {
    float* kept = shared.position.temperature;
    float gradient = -mean_log_probability - shared.run.target_entropy;
    kept[1] = 0.9f * kept[1] + 0.1f * gradient;
    kept[2] = 0.999f * kept[2] + 0.001f * gradient * gradient;
    kept[0] -= shared.scale * kept[1] / (sqrtf(kept[2]) * shared.whiten + 1e-8f);
}

// What is reported of a gradient step.
struct Told {
    float critics_loss, policy_loss, entropy, alpha, action_value;
};

// One gradient step. The policy is in shared memory.
DEVICE Told update(Shared& shared, unsigned* scratch) {
    Place place = Place::here();
    Samples& samples = shared.samples;
    Position& position = shared.position;
    int sample = place.thread;
    if (sample == 0) {
        position.mean_decay *= 0.9, position.square_decay *= 0.999;
        shared.scale = static_cast<float>(shared.run.learning_rate / (1 - position.mean_decay));
        shared.whiten = static_cast<float>(1 / sqrt(1 - position.square_decay));
    }
    float alpha = exp_of(position.temperature[0]);
    Outcome outcome = draw_sample(shared, sample);
    meet();
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        act_next(shared, pass);
        act_now(shared, scratch, pass);
    }
    meet();
    float log_probability = samples.pull[sample][0];
    evaluate(shared, scratch, shared.passing.stage, TARGET, 0);
    evaluate(shared, scratch, shared.passing.stage, OTHER_TARGET, 1);
    float smaller = fminf(samples.value[0][sample], samples.value[1][sample]);
    float backup = outcome.reward +
                   outcome.goes_on * shared.run.discount * (smaller - alpha * samples.log_probability[sample]);
    samples.backup[sample] = backup;
    meet();
    learn_critic(shared, scratch, CRITIC);
    learn_critic(shared, scratch, OTHER_CRITIC);
    float squares = samples.value[0][sample] * samples.value[0][sample] + samples.value[1][sample] * samples.value[1][sample];
    action_word(shared.inputs, sample) = machine::halves(samples.action[sample][0], samples.action[sample][1]);
    meet();
    evaluate_action(shared, scratch, CRITIC, 0);
    evaluate_action(shared, scratch, OTHER_CRITIC, 1);
    float policy_loss = pull_policy(samples, sample, alpha, log_probability);
    float mean_log_probability = sum_over_block(shared, place, log_probability) / SAMPLES;
    Told told = {shared.run.critic_weight * sum_over_block(shared, place, squares) / SAMPLES,
                 sum_over_block(shared, place, policy_loss) / SAMPLES, -mean_log_probability, alpha,
                 sum_over_block(shared, place, backup) / SAMPLES};
    learn_policy(shared, scratch);
    if (sample == 0) {
        move_temperature(shared, mean_log_probability);
        position.updates++;
    }
    meet();
    return told;
}

}  // namespace sac
