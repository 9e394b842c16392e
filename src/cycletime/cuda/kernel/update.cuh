// One gradient step of Algorithm 4 on one network: forward, backward, Adam.
#pragma once
#include "forward.cuh"

constexpr float LOG_SQRT_2_PI = 0.91893853320467274f, LOG2_E = 1.4426950408889634f;

DEVICE float exp_of(float x) { return machine::exp2_of(x * LOG2_E); }

// What a thread sums up over the chunks of a mini-batch.
struct Gradient {
    float second[8][4];       // units (g, g + 8) of its warp x units 2t, 2t + 1 of each eight
    float first[2][4];        // units x inputs
    float second_bias[2];
    float last[2][ACTIONS];
    float last_bias[ACTIONS]; // of the samples that this lane took
    float log_std[ACTIONS];

    DEVICE void reset() {
        clear(second);
        clear(first);
#pragma unroll
        for (int i = 0; i < 2; i++) second_bias[i] = last[i][0] = last[i][1] = last_bias[i] = log_std[i] = 0;
    }
};

DEVICE float log_probability(const Network& policy, const float (&mean)[ACTIONS], const float* action, int actions,
                             float (&away)[ACTIONS]) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < ACTIONS; i++) {
        float log_std = policy.weight.log_std[i];
        away[i] = i < actions ? (action[i] - mean[i]) * exp_of(-log_std) : 0;
        sum += i < actions ? -0.5f * away[i] * away[i] - log_std - LOG_SQRT_2_PI : 0;
    }
    return sum;
}

// How the loss -min(rho h~, clip(rho) h~) changes with the policy's outputs for one sample.
DEVICE void pull_policy(Network& network, const Run& run, const float* samples, int sample, float share,
                        const Place& place, Gradient& gradient) {
    float mean[ACTIONS] = {output(network, sample, 0), output(network, sample, 1)}, away[ACTIONS];
    float action[ACTIONS];
    read_pair(&samples[at_sample(sample, ACTION)], action[0], action[1]);
    float advantage, old;
    read_pair(&samples[at_sample(sample, ADVANTAGE)], advantage, old);
    float ratio = exp_of(log_probability(network, mean, action, run.actions, away) - old);
    float bounded = fminf(fmaxf(ratio, 1 - run.clip), 1 + run.clip);
    float slope = ratio * advantage <= bounded * advantage ? -share * ratio * advantage : 0;
#pragma unroll
    for (int i = 0; i < ACTIONS; i++) {
        bool used = i < run.actions;
        float pull = used ? slope * away[i] * exp_of(-network.weight.log_std[i]) : 0;
        network.pull[place.warp][sample * ACTIONS + i] = pull;
        gradient.last_bias[i] += pull;
        gradient.log_std[i] += used ? slope * (away[i] * away[i] - 1) : 0;
    }
}

// How (G^lambda - v)^2 changes with the value of one sample.
DEVICE void pull_value(Network& network, const float* samples, int sample, float share, const Place& place,
                       Gradient& gradient) {
    float pull = 2 * share * (output(network, sample, 0) - samples[at_sample(sample, LAMBDA_RETURN)]);
    float* mine = network.pull[place.warp] + sample * ACTIONS;
    mine[0] = pull;
    mine[1] = 0;
    gradient.last_bias[0] += pull;
}

// Adds the gradient of `count` samples, each of which weighs `share`, in TILES tiles of eight. `meanwhile` is called
// when all threads are done with the chunk before.
template <int TILES, class Meanwhile>
DEVICE void add_gradient(Network& network, const Run& run, const float* samples, int count, float share,
                         Gradient& gradient, Meanwhile meanwhile) {
    const Place place = Place::anew();
    int unit = place.unit(), t2 = 2 * place.t;
    float two[TILES][4];
    hidden_layers<TILES>(network, samples, place, two);
    share_outputs<TILES>(network, place, two);
    place.wait();
    meanwhile();
#pragma unroll
    for (int first = 0; first < 8 * TILES; first += 32) {
        int sample = first + place.lane;
        if (sample < 8 * TILES) {
            if (sample >= count) {
                network.pull[place.warp][sample * ACTIONS] = network.pull[place.warp][sample * ACTIONS + 1] = 0;
            } else if (place.network == 0) {
                pull_policy(network, run, samples, sample, share, place, gradient);
            } else {
                pull_value(network, samples, sample, share, place, gradient);
            }
        }
    }
    machine::wait_for_warp();
    float last[2][ACTIONS];
    read_pair(&network.weight.last[unit * ACTIONS], last[0][0], last[0][1]);
    read_pair(&network.weight.last[(unit + 8) * ACTIONS], last[1][0], last[1][1]);
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        float4 pull = *reinterpret_cast<const float4*>(&network.pull[place.warp][(8 * n + t2) * ACTIONS]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float pull_0 = i % 2 ? pull.z : pull.x, pull_1 = i % 2 ? pull.w : pull.y, h = two[n][i];
            gradient.last[i / 2][0] += h * pull_0;
            gradient.last[i / 2][1] += h * pull_1;
            float slope = (last[i / 2][0] * pull_0 + last[i / 2][1] * pull_1) * (1 - h * h);
            gradient.second_bias[i / 2] += slope;
            network.slope[n * TILE + place.own[i]] = slope;
        }
    }
    machine::wait_for_copies();
    place.wait();
    clear(two);  // from here on: how the loss changes with the first layer's sums
    multiply_by_samples(two, network.slope, place, [&](int k, int, float (&a)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = network.second[k * HIDDEN + place.own[i]];
    });
    const Place late = Place::anew();
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        float x[2][2];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i / 2][i % 2] = samples[n * SAMPLE_TILE + late.sample[i]];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float h = network.hidden[n * TILE + late.own[i]];
            two[n][i] *= 1 - h * h;
        }
        multiply(gradient.first, two[n], x);
    }
#pragma unroll 2
    for (int n = 0; n < TILES; n++) {
        float a[4], b[8][2];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = network.hidden[n * TILE + late.own[i]];
#pragma unroll
        for (int i = 0; i < 16; i++)
            b[i / 2][i % 2] = network.slope[n * TILE + late.across[i % 2][i / 2 % 4] + i / 8 * 32];
        multiply(gradient.second, a, b);
    }
}

// Adam's rates at one step: eta / (1 - beta_1^t) and 1 / sqrt(1 - beta_2^t).
struct Rates {
    float scale, whiten;

    DEVICE static Rates of(float learning_rate, double mean_decay, double square_decay) {
        return {learning_rate * machine::inverse_of(static_cast<float>(1 - mean_decay)),
                machine::inverse_of(machine::root_of(static_cast<float>(1 - square_decay)))};
    }
};

// Numbers that a thread moves, with Adam's moments of them. All are read before any is written: the compiler keeps reads
// of shared memory behind the writes before them, and each would wait for the last.
template <int N>
struct Moved {
    float number[N], mean[N], square[N];

    template <class Gradients>  // gradient(i): that of the i-th number
    DEVICE void move(Gradients gradient, const Rates& rates) {
        float below[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            mean[i] = 0.9f * mean[i] + 0.1f * gradient(i);
            square[i] = 0.999f * square[i] + 0.001f * gradient(i) * gradient(i);
            below[i] = machine::root_of(square[i]) * rates.whiten + 1e-8f;
        }
        // One inverse for two numbers: there are few units for it, and they are what takes the time here. The product
        // overflows for gradients of 1e19 and more, when learning is lost anyway.
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            float both = rates.scale * machine::inverse_of(below[i] * below[i + 1]);
            number[i] -= mean[i] * (both * below[i + 1]);
            number[i + 1] -= mean[i + 1] * (both * below[i]);
        }
    }
};

// A thread's numbers of the second layer.
struct MovedSecond : Moved<32> {
    DEVICE void read(const Network& network, const Place& place) {
#pragma unroll
        for (int n = 0; n < 8; n++) {
            float4 means = network.moments.mean(n, place.thread), squares = network.moments.square(n, place.thread);
            mean[4 * n] = means.x, mean[4 * n + 1] = means.y, mean[4 * n + 2] = means.z, mean[4 * n + 3] = means.w;
            square[4 * n] = squares.x, square[4 * n + 1] = squares.y;
            square[4 * n + 2] = squares.z, square[4 * n + 3] = squares.w;
#pragma unroll
            for (int i = 0; i < 4; i++) number[4 * n + i] = network.second[n * TILE + place.own[i]];
        }
    }

    DEVICE void write(Network& network, const Place& place) const {
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const float *means = &mean[4 * n], *squares = &square[4 * n];
            network.moments.put(n, place.thread, {means[0], means[1], means[2], means[3]},
                                {squares[0], squares[1], squares[2], squares[3]});
#pragma unroll
            for (int i = 0; i < 4; i++) network.second[n * TILE + place.own[i]] = number[4 * n + i];
        }
    }
};

// Its small numbers: four of the first layer's first eight inputs; for t = 0 as many of the next, of which two are used;
// for t < 3 two of what all t share; and for one thread of each warp an output's bias or a log sigma.
struct MovedSmall : Moved<10> {
    int index[10];  // where they lie among the small numbers, below zero for none

    DEVICE explicit MovedSmall(const Place& place) {
        int unit = place.unit(), t = place.t;
#pragma unroll
        for (int i = 0; i < 4; i++) index[i] = place.own[i], index[4 + i] = t == 0 ? TILE + place.own[i] : -1;
        index[8] = t == 0 ? SMALL_BIAS + unit : SMALL_LAST + unit * ACTIONS + t - 1;
        index[9] = t == 0 ? SMALL_BIAS + unit + 8 : SMALL_LAST + (unit + 8) * ACTIONS + t - 1;
        if (t == 3) index[8] = place.g == 0 ? SMALL_ENDS + place.warp : -1, index[9] = -1;
    }

    DEVICE void read(const Network& network) {
#pragma unroll
        for (int i = 0; i < 10; i++) {
            number[i] = index[i] < 0 ? 0 : words_of(network.weight)[index[i]];
            mean[i] = index[i] < 0 ? 0 : words_of(network.mean)[index[i]];
            square[i] = index[i] < 0 ? 0 : words_of(network.square)[index[i]];
        }
    }

    DEVICE void write(Network& network) const {
#pragma unroll
        for (int i = 0; i < 10; i++) {
            if (index[i] < 0) continue;
            words_of(network.weight)[index[i]] = number[i];
            words_of(network.mean)[index[i]] = mean[i];
            words_of(network.square)[index[i]] = square[i];
        }
    }
};

DEVICE float sum_over_t(float value) {
    value += machine::from_mirror(value, 1);
    return value + machine::from_mirror(value, 2);
}

DEVICE float sum_over_warp(float value) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) value += machine::from_mirror(value, mask);
    return value;
}

// The gradient of a thread's small numbers, in the order of MovedSmall.
DEVICE void small_gradient(const Gradient& gradient, const Place& place, float (&small)[10]) {
#pragma unroll
    for (int i = 0; i < 4; i++) small[i] = gradient.first[0][i], small[4 + i] = gradient.first[1][i];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float bias = sum_over_t(gradient.second_bias[i]);
        float last_0 = sum_over_t(gradient.last[i][0]), last_1 = sum_over_t(gradient.last[i][1]);
        small[8 + i] = machine::either(place.t, machine::either(place.t - 1, last_1, last_0), bias);
    }
    // All warps took all samples; each sums one of these up.
    float end = machine::either(place.warp & 2, machine::either(place.warp & 1, gradient.log_std[1], gradient.log_std[0]),
                                machine::either(place.warp & 1, gradient.last_bias[1], gradient.last_bias[0]));
    small[8] = machine::either(place.t == 3, sum_over_warp(end), small[8]);
}

// Moves the network down the gradient. A warp writes only what it alone reads before the next barrier.
DEVICE void step_down(Network& network, const Gradient& gradient, const Rates& rates) {
    const Place place = Place::anew();
    MovedSecond second;
    MovedSmall small(place);
    second.read(network, place);
    small.read(network);
    float pull[10];
    small_gradient(gradient, place, pull);
    small.move([&](int i) { return pull[i]; }, rates);
    second.move([&](int i) { return gradient.second[i / 4][i % 4]; }, rates);
    small.write(network);
    second.write(network, place);
    machine::wait_for_warp();
}
