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
                         const Place& place, Gradient& gradient, Meanwhile meanwhile) {
    int unit = place.unit(), t2 = 2 * place.t;
    float one[TILES][4], two[TILES][4];
    hidden_layers<TILES>(network, samples, place, one, two);
    share_outputs<TILES>(network, place, two);
    place.wait();
    meanwhile();
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int sample = 2 * place.lane + i;
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
    int from[4];
#pragma unroll
    for (int i = 0; i < 4; i++) from[i] = machine::anew(place.sample[i]);
#pragma unroll
    for (int n = 0; n < TILES; n++) {
        float x[2][2];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i / 2][i % 2] = samples[n * SAMPLE_TILE + from[i]];
#pragma unroll
        for (int i = 0; i < 4; i++) two[n][i] *= 1 - one[n][i] * one[n][i];
        multiply(gradient.first, two[n], x);
    }
#pragma unroll 1
    for (int n = 0; n < TILES; n++) {
        float a[4], b[8][2];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = network.hidden[n * TILE + place.own[i]];
#pragma unroll
        for (int i = 0; i < 16; i++)
            b[i / 2][i % 2] = network.slope[n * TILE + place.across[i % 2][i / 2 % 4] + i / 8 * 32];
        multiply(gradient.second, a, b);
    }
}

// Adam's rates at one step: eta / (1 - beta_1^t) and 1 / sqrt(1 - beta_2^t).
struct Rates {
    float scale, whiten;
};

DEVICE float adam(float number, float gradient, float& mean, float& square, const Rates& rates) {
    mean = 0.9f * mean + 0.1f * gradient;
    square = 0.999f * square + 0.001f * gradient * gradient;
    return number - rates.scale * mean * machine::inverse_of(machine::root_of(square) * rates.whiten + 1e-8f);
}

// Moves one of the small numbers, told by its place in `weight`.
DEVICE void adam_small(Network& network, const float* place, float gradient, const Rates& rates) {
    int index = place - reinterpret_cast<const float*>(&network.weight);
    float* number = reinterpret_cast<float*>(&network.weight) + index;
    float* mean = reinterpret_cast<float*>(&network.mean) + index;
    float* square = reinterpret_cast<float*>(&network.square) + index;
    *number = adam(*number, gradient, *mean, *square, rates);
}

DEVICE float sum_over_t(float value) {
    value += machine::from_mirror(value, 1);
    return value + machine::from_mirror(value, 2);
}

DEVICE float sum_over_warp(float value) {
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) value += machine::from_mirror(value, mask);
    return value;
}

// Moves the network down the gradient. A warp writes only what it alone reads before the next barrier.
DEVICE void step_down(Network& network, const Place& place, Gradient& gradient, const Rates& rates) {
    int unit = place.unit();
    Small& weight = network.weight;
    // Of what all t share, each t moves one number per unit.
    float shared[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float bias = sum_over_t(gradient.second_bias[i]);
        float last_0 = sum_over_t(gradient.last[i][0]), last_1 = sum_over_t(gradient.last[i][1]);
        shared[i] = machine::either(place.t, machine::either(place.t - 1, last_1, last_0), bias);
    }
    if (place.warp == 0) {
        float sums[4] = {sum_over_warp(gradient.last_bias[0]), sum_over_warp(gradient.last_bias[1]),
                         sum_over_warp(gradient.log_std[0]), sum_over_warp(gradient.log_std[1])};
        float sum = machine::either(place.g & 2, machine::either(place.g & 1, sums[3], sums[2]),
                                    machine::either(place.g & 1, sums[1], sums[0]));
        if (place.t == 3 && place.g < 4) adam_small(network, &weight.last_bias[0] + place.g, sum, rates);
    }
    if (place.t < 3) {
        const float* number = place.t == 0 ? &weight.second_bias[unit] : &weight.last[unit * ACTIONS + place.t - 1];
        adam_small(network, number, shared[0], rates);
        adam_small(network, number + (place.t == 0 ? 8 : 8 * ACTIONS), shared[1], rates);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) adam_small(network, &weight.first[place.own[i]], gradient.first[0][i], rates);
    if (place.t == 0) {  // of the second eight inputs two are used
#pragma unroll
        for (int i = 0; i < 4; i++) adam_small(network, &weight.first[TILE + place.own[i]], gradient.first[1][i], rates);
    }
#pragma unroll
    for (int n = 0; n < 8; n++) {
        float4 mean = network.second_mean[n][place.thread], square = network.second_square[n][place.thread];
        float* number = &network.second[n * TILE];
        number[place.own[0]] = adam(number[place.own[0]], gradient.second[n][0], mean.x, square.x, rates);
        number[place.own[1]] = adam(number[place.own[1]], gradient.second[n][1], mean.y, square.y, rates);
        number[place.own[2]] = adam(number[place.own[2]], gradient.second[n][2], mean.z, square.z, rates);
        number[place.own[3]] = adam(number[place.own[3]], gradient.second[n][3], mean.w, square.w, rates);
        network.second_mean[n][place.thread] = mean, network.second_square[n][place.thread] = square;
    }
    machine::wait_for_warp();
}
